/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Work for a CUDA device by the driver alone, found at run time: copies to and fro, fills and
 * kernels, some of it inside of regions, from the given number of threads. cuda_driver THREADS
 * KERNELS [HOW], HOW is how it ends: "return", "_exit", "exec" (of true), "quick_exit", "host_exit"
 * and "host__exit" (by a function on a stream), "wait" (for a signal that ends it), "fork" (a child
 * that uses nothing, then return).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/need.h"

/* A kernel that does nothing, for any device. */
#define MODULE \
	".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry _Z4workPf() { ret; }\n"
#define N_BYTES 4096u

/* DRIVER(name, parameters): of libcuda.so.1 */
#define DRIVERS                                                                                  \
	DRIVER(cuInit, (unsigned flags))                                                         \
	DRIVER(cuDeviceGet, (int *device, int ordinal))                                          \
	DRIVER(cuDevicePrimaryCtxRetain, (void **context, int device))                           \
	DRIVER(cuCtxSetCurrent, (void *context))                                                 \
	DRIVER(cuModuleLoadData, (void **module, const void *image))                             \
	DRIVER(cuModuleGetFunction, (void **function, void *module, const char *name))           \
	DRIVER(cuStreamCreate, (void **stream, unsigned flags))                                  \
	DRIVER(cuLaunchHostFunc, (void *stream, void (*function)(void *), void *data))           \
	DRIVER(cuStreamSynchronize, (void *stream))                                              \
	DRIVER(cuCtxSynchronize, (void))                                                         \
	DRIVER(cuMemAlloc_v2, (uint64_t * address, size_t n_bytes))                              \
	DRIVER(cuMemFree_v2, (uint64_t address))                                                 \
	DRIVER(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t n_bytes))                 \
	DRIVER(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t n_bytes))                       \
	DRIVER(cuMemcpyDtoD_v2, (uint64_t to, uint64_t from, size_t n_bytes))                    \
	DRIVER(cuMemsetD8_v2, (uint64_t at, unsigned char value, size_t n))                      \
	DRIVER(cuLaunchKernel,                                                                   \
	       (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
		unsigned bz, unsigned shared, void *stream, void **parameters, void **extra))

#define DRIVER(name, parameters) static int(*name) parameters;
DRIVERS
#undef DRIVER

static void *context, *module, *function;
static int n_kernels;

static void find_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
#define DRIVER(name, parameters)                 \
	*(void **)&name = dlsym(library, #name); \
	need(name == NULL, #name);
	DRIVERS
#undef DRIVER
}

static void *work(void *unused)
{
	unsigned char host[N_BYTES] = {0}, back[N_BYTES];
	uint64_t a, b;
	void *stream;

	(void)unused;
	NEED(cuCtxSetCurrent(context));
	NEED(cuStreamCreate(&stream, 1));
	NEED(cuMemAlloc_v2(&a, N_BYTES));
	NEED(cuMemAlloc_v2(&b, N_BYTES));
	NEED(cuMemcpyHtoD_v2(a, host, N_BYTES));
	NEED(cuMemsetD8_v2(a, 7, N_BYTES / 2));
	NEED(cuMemcpyDtoD_v2(b, a, N_BYTES));
	for (int i = 0; i < n_kernels; i++)
		NEED(cuLaunchKernel(function, 4, 2, 1, 64, 1, 1, 256, stream, NULL, NULL));
	NEED(cuStreamSynchronize(stream));
	NEED(cuMemcpyDtoH_v2(back, b, N_BYTES));
	if (back[0] != 7 || back[N_BYTES - 1] != 0)
		exit(1);
	NEED(cuMemFree_v2(a));
	NEED(cuMemFree_v2(b));
	return NULL;
}

static void fork_child(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		free(malloc(100));
		exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		exit(1);
}

/* By a thread of the driver's, while this one waits for it. */
static void end_here(void *how)
{
	if (!strcmp(how, "_exit"))
		_exit(4);
	exit(4);
}

static void end_on_stream(const char *how)
{
	NEED(cuLaunchHostFunc(NULL, end_here, (void *)how));
	NEED(cuCtxSynchronize());
	pause();
}

int main(int argc, char **argv)
{
	int n_threads = argc > 1 ? atoi(argv[1]) : 1, device;
	const char *how = argc > 3 ? argv[3] : "return";
	pthread_t threads[64];

	n_kernels = argc > 2 ? atoi(argv[2]) : 10;
	find_driver();
	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	NEED(cuModuleLoadData(&module, MODULE));
	NEED(cuModuleGetFunction(&function, module, "_Z4workPf"));
	for (int i = 0; i < n_threads && i < 64; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < n_threads && i < 64; i++)
		pthread_join(threads[i], NULL);
	NEED(cuCtxSynchronize());
	if (!strcmp(how, "fork"))
		fork_child();
	puts("done");
	fflush(stdout);
	if (!strcmp(how, "_exit"))
		_exit(3);
	if (!strcmp(how, "quick_exit"))
		quick_exit(4);
	if (!strncmp(how, "host_", 5))
		end_on_stream(how + 5);
	if (!strcmp(how, "wait"))
		pause();
	if (!strcmp(how, "exec"))
		execl("/bin/true", "true", (char *)NULL);
	return 0;
}
