/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Launches of kernels without a framework, on two streams of each device: inside of ranges that
 * name an operator, inside of ones that don't, and outside of all; a copy and a fill too. Prints
 * what it launched, a line each: the kernel's name and the range around it, "-": none.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ranges/torsh.h"

#include "test/lib/need.h"

#define N_BYTES 1024u

/* DRIVER(name, parameters): of libcuda.so.1 */
#define DRIVERS                                                                                  \
	DRIVER(cuInit, (unsigned flags))                                                         \
	DRIVER(cuDeviceGetCount, (int *n))                                                       \
	DRIVER(cuDeviceGet, (int *device, int ordinal))                                          \
	DRIVER(cuDevicePrimaryCtxRetain, (void **context, int device))                           \
	DRIVER(cuCtxSetCurrent, (void *context))                                                 \
	DRIVER(cuModuleLoadData, (void **module, const void *image))                             \
	DRIVER(cuModuleGetFunction, (void **function, void *module, const char *name))           \
	DRIVER(cuStreamCreate, (void **stream, unsigned flags))                                  \
	DRIVER(cuCtxSynchronize, (void))                                                         \
	DRIVER(cuMemAlloc_v2, (uint64_t * address, size_t n_bytes))                              \
	DRIVER(cuMemFree_v2, (uint64_t address))                                                 \
	DRIVER(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t n_bytes))                 \
	DRIVER(cuMemsetD8_v2, (uint64_t at, unsigned char value, size_t n))                      \
	DRIVER(cuLaunchKernel,                                                                   \
	       (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
		unsigned bz, unsigned shared, void *stream, void **parameters, void **extra))

#define DRIVER(name, parameters) static int(*name) parameters;
DRIVERS
#undef DRIVER

static void *module;

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

/* range may be NULL. */
static void launch(void *stream, const char *range, const char *name)
{
	void *function;

	NEED(cuModuleGetFunction(&function, module, name));
	if (range)
		torsh_range_push(range);
	NEED(cuLaunchKernel(function, 3, 1, 1, 32, 2, 1, 64, stream, NULL, NULL));
	if (range)
		torsh_range_pop();
	printf("%s %s\n", name, range ? range : "-");
}

static void work(void *stream)
{
	static const char host[N_BYTES];
	uint64_t memory;

	launch(stream, "my::scale", "scale");
	launch(stream, "my::scale", "scale");
	launch(stream, "preparations", "shift");
	launch(stream, NULL, "ampere_sgemm_64x64_nn");
	torsh_range_push("my::outer");
	launch(stream, "preparations", "shift");
	launch(stream, "my::inner", "shift");
	torsh_range_pop();
	NEED(cuMemAlloc_v2(&memory, N_BYTES));
	torsh_range_push("my::fill");
	NEED(cuMemcpyHtoD_v2(memory, host, N_BYTES));
	torsh_range_pop();
	NEED(cuMemsetD8_v2(memory, 1, N_BYTES));
	NEED(cuMemFree_v2(memory));
}

/* Two layers that the program declares to be the same, and one that differs. */
static void mark_layers(void *stream)
{
	static const char *const tags[] = {"layer::unique::first", "layer::duplicate::second",
					   "layer::unique::last"};

	for (int i = 0; i < 3; i++) {
		torsh_range_push(tags[i]);
		launch(stream, "my::project", "project");
		if (i < 2)
			launch(stream, "my::norm", "norm");
		torsh_range_pop();
	}
}

int main(int argc, char **argv)
{
	int n_devices, device;

	find_driver();
	NEED(cuInit(0));
	NEED(cuDeviceGetCount(&n_devices));
	for (int i = 0; i < n_devices; i++) {
		void *context, *streams[2];

		NEED(cuDeviceGet(&device, i));
		NEED(cuDevicePrimaryCtxRetain(&context, device));
		NEED(cuCtxSetCurrent(context));
		NEED(cuModuleLoadData(&module, "code"));
		for (int k = 0; k < 2; k++) {
			NEED(cuStreamCreate(&streams[k], 1));
			work(streams[k]);
		}
		if (argc > 1 && strcmp(argv[1], "layers") == 0)
			mark_layers(streams[0]);
		NEED(cuCtxSynchronize());
	}
	return 0;
}
