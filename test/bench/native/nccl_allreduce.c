/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * nccl_allreduce CALLS: all-reduces of 8 bytes by a communicator of one rank; prints nanoseconds a
 * call, by the process's CPU time and by the wall clock. The libraries are found at run time:
 * build/simcuda/lib has simulated ones.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WAIT_EVERY 512 /* less than a stream holds */
#define FLOAT64 8
#define SUM 0

struct unique_id {
	char internal[128];
};

static int (*all_reduce)(const void *from, void *to, size_t n, int type, int operation,
			 void *communicator, void *stream);
static int (*await_stream)(void *stream);
static void *communicator, *stream, *memory;

static void *find(void *library, const char *name)
{
	void *found = library ? dlsym(library, name) : NULL;

	if (!found) {
		fprintf(stderr, "no %s: %s\n", name, dlerror());
		exit(1);
	}
	return found;
}

static void need(int result)
{
	if (result) {
		fprintf(stderr, "error %d\n", result);
		exit(1);
	}
}

static void prepare(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL), *context;
	struct unique_id id;
	int device;

	*(void **)&all_reduce = find(nccl, "ncclAllReduce");
	*(void **)&await_stream = find(cuda, "cuStreamSynchronize");
	need(((int (*)(unsigned))find(cuda, "cuInit"))(0));
	need(((int (*)(int *, int))find(cuda, "cuDeviceGet"))(&device, 0));
	need(((int (*)(void **, int))find(cuda, "cuDevicePrimaryCtxRetain"))(&context, device));
	need(((int (*)(void *))find(cuda, "cuCtxSetCurrent"))(context));
	need(((int (*)(void **, unsigned))find(cuda, "cuStreamCreate"))(&stream, 1));
	need(((int (*)(void **, size_t))find(cuda, "cuMemAlloc_v2"))(&memory, 4096));
	need(((int (*)(struct unique_id *))find(nccl, "ncclGetUniqueId"))(&id));
	need(((int (*)(void **, int, struct unique_id, int))find(nccl, "ncclCommInitRank"))(
		&communicator, 1, id, 0));
}

static void reduce(long n)
{
	for (long i = 0; i < n; i++) {
		need(all_reduce(memory, memory, 1, FLOAT64, SUM, communicator, stream));
		if (i % WAIT_EVERY == WAIT_EVERY - 1)
			need(await_stream(stream));
	}
	need(await_stream(stream));
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1;
	double cpu, wall;

	prepare();
	reduce(n / 10 + 1);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	wall = seconds(CLOCK_MONOTONIC);
	reduce(n);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = seconds(CLOCK_MONOTONIC) - wall;
	printf("{\"cpu_ns\": %.1f, \"wall_ns\": %.1f, \"ranks\": 1, \"calls\": %ld}\n",
	       cpu * 1e9 / (double)n, wall * 1e9 / (double)n, n + n / 10 + 1);
	return 0;
}
