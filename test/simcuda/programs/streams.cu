// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Streams, events, copies, pools, a captured graph and a host function, with a known number of
 * each. Prints what it saw.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call) \
	do { \
		cudaError_t error = (call); \
		if (error != cudaSuccess) { \
			std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(error)); \
			std::exit(1); \
		} \
	} while (0)

enum { N = 1 << 16, LAUNCHES = 10, REPLAYS = 5 };

__device__ int counter;

__global__ void scale(float *values, float by, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		values[i] *= by;
}

__global__ void reduce(const float *values, float *sum)
{
	atomicAdd(sum, values[threadIdx.x]);
}

static void count(void *data)
{
	++*static_cast<int *>(data);
}

static void check_copies()
{
	char *host, *device, *back;

	CHECK(cudaMallocHost(&host, N));
	CHECK(cudaMallocHost(&back, N));
	CHECK(cudaMalloc(&device, N));
	for (int i = 0; i < N; i++)
		host[i] = static_cast<char>(i * 7);
	CHECK(cudaMemcpy(device, host, N, cudaMemcpyHostToDevice));
	CHECK(cudaMemset(device + 100, 42, 50));
	CHECK(cudaMemcpy(back, device, N, cudaMemcpyDeviceToHost));
	std::memset(host + 100, 42, 50);
	std::printf("copies %s\n", std::memcmp(host, back, N) ? "differ" : "agree");
	CHECK(cudaFree(device));
	CHECK(cudaFreeHost(host));
	CHECK(cudaFreeHost(back));
}

static void overlap(cudaStream_t a, cudaStream_t b, float *values)
{
	cudaEvent_t begin, end, between;
	float took;

	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	CHECK(cudaEventCreateWithFlags(&between, cudaEventDisableTiming));
	CHECK(cudaEventRecord(begin, a));
	for (int i = 0; i < LAUNCHES; i++) {
		scale<<<N / 256, 256, 0, a>>>(values, 2.0f, N);
		scale<<<N / 256, 256, 128, b>>>(values, 3.0f, N);
	}
	CHECK(cudaEventRecord(between, b));
	CHECK(cudaStreamWaitEvent(a, between, 0));
	CHECK(cudaEventRecord(end, a));
	CHECK(cudaEventSynchronize(end));
	CHECK(cudaEventElapsedTime(&took, begin, end));
	std::printf("overlapped %.3f ms\n", took);
}

static void graph(cudaStream_t a, cudaStream_t b, float *values)
{
	cudaGraph_t captured;
	cudaGraphExec_t executable;
	cudaEvent_t fork, join;
	size_t n;

	CHECK(cudaEventCreate(&fork));
	CHECK(cudaEventCreate(&join));
	CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
	scale<<<1, 256, 0, a>>>(values, 1.0f, 256);
	CHECK(cudaEventRecord(fork, a));
	CHECK(cudaStreamWaitEvent(b, fork, 0));
	reduce<<<1, 32, 0, b>>>(values, values);
	CHECK(cudaMemsetAsync(values, 0, 256, a));
	CHECK(cudaEventRecord(join, b));
	CHECK(cudaStreamWaitEvent(a, join, 0));
	CHECK(cudaStreamEndCapture(a, &captured));
	CHECK(cudaGraphGetNodes(captured, nullptr, &n));
	CHECK(cudaGraphInstantiate(&executable, captured, 0));
	for (int i = 0; i < REPLAYS; i++)
		CHECK(cudaGraphLaunch(executable, a));
	CHECK(cudaStreamSynchronize(a));
	CHECK(cudaGraphExecDestroy(executable));
	CHECK(cudaGraphDestroy(captured));
	std::printf("nodes %zu\n", n);
}

int main()
{
	cudaStream_t a, b;
	float *values;
	int calls = 0, devices, number = 5, back = 0;
	size_t free_before, free_after, total;

	CHECK(cudaGetDeviceCount(&devices));
	std::printf("devices %d\n", devices);
	check_copies();
	CHECK(cudaMemGetInfo(&free_before, &total));
	CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	CHECK(cudaMallocAsync(&values, N * sizeof(float), a));
	CHECK(cudaStreamSynchronize(a));
	overlap(a, b, values);
	graph(a, b, values);
	CHECK(cudaLaunchHostFunc(a, count, &calls));
	CHECK(cudaFreeAsync(values, a));
	CHECK(cudaStreamSynchronize(a));
	CHECK(cudaMemcpyToSymbol(counter, &number, sizeof(number)));
	CHECK(cudaMemcpyFromSymbol(&back, counter, sizeof(back)));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemGetInfo(&free_after, &total));
	std::printf("host calls %d, symbol %d\n", calls, back);
	CHECK(cudaStreamDestroy(a));
	CHECK(cudaStreamDestroy(b));
	return 0;
}
