/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Launches kernels as fast as it goes: launches KERNELS [THREADS], prints nanoseconds a launch, by
 * the process's CPU time and by the wall clock. With kernels that take no time what is left is what
 * a launch costs the host. The driver is found at run time: build/simcuda/lib has a simulated one.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WAIT_EVERY 512 /* less than a stream holds */
#define THREADS_MAX 64

static int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		     unsigned by, unsigned bz, unsigned shared, void *stream, void **parameters,
		     void **extra);
static int (*make_stream)(void **stream, unsigned flags);
static int (*await_stream)(void *stream);
static int (*set_context)(void *context);
static void *context, *function;
static long n_kernels;

static void *find(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "libcuda.so.1 has no %s\n", name);
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
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *module;
	int device;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&launch = find(library, "cuLaunchKernel");
	*(void **)&make_stream = find(library, "cuStreamCreate");
	*(void **)&await_stream = find(library, "cuStreamSynchronize");
	*(void **)&set_context = find(library, "cuCtxSetCurrent");
	need(((int (*)(unsigned))find(library, "cuInit"))(0));
	need(((int (*)(int *, int))find(library, "cuDeviceGet"))(&device, 0));
	need(((int (*)(void **, int))find(library, "cuDevicePrimaryCtxRetain"))(&context, device));
	need(set_context(context));
	need(((int (*)(void **, const void *))find(library, "cuModuleLoadData"))(&module, "code"));
	need(((int (*)(void **, void *, const char *))find(library, "cuModuleGetFunction"))(
		&function, module, "_Z4workPf"));
}

static void *work(void *unused)
{
	void *stream;

	need(set_context(context));
	need(make_stream(&stream, 1));
	for (long i = 0; i < n_kernels; i++) {
		/* A few sizes of grid, as programs have them. */
		need(launch(function, 1 + (unsigned)(i & 7), 1, 1, 128, 1, 1, 0, stream, NULL,
			    NULL));
		if (i % WAIT_EVERY == WAIT_EVERY - 1)
			need(await_stream(stream));
	}
	need(await_stream(stream));
	return unused;
}

static double now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	int n_threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t threads[THREADS_MAX];
	double cpu_ns, wall_ns;

	n_kernels = argc > 1 ? atol(argv[1]) : 1000000;
	if (n_threads < 1 || n_threads > THREADS_MAX)
		return 2;
	prepare();
	cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	wall_ns = now_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < n_threads; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	wall_ns = now_ns(CLOCK_MONOTONIC) - wall_ns;
	printf("{\"cpu_ns\": %.1f, \"wall_ns\": %.1f}\n", cpu_ns / (double)(n_kernels * n_threads),
	       wall_ns / (double)(n_kernels * n_threads));
	return 0;
}
