/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Work for a CUDA device by every entry point, and memory, found in one of the ways that programs
 * have. cuda_entries HOW N [TAKE]
 *
 *	symbol	as a program that is linked with the driver (weak, so that it can be built without
 *		it)
 *	default	by dlsym(RTLD_DEFAULT)
 *	dlsym	by dlopen and dlsym
 *	proc	by cuGetProcAddress, itself found by dlsym, as the CUDA runtime does, static or not
 *	own	by a cuGetProcAddress that returned itself
 *	ptsz	the same with a default stream for each thread
 *
 * TAKE is the name under which CUPTI is subscribed to before anything else.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/lib/need.h"

#define N_BYTES 4096u
#define VERSION 12080
#define PER_THREAD_STREAM 2

/* As CUlaunchConfig. */
struct launch {
	unsigned grid[3], block[3], shared;
	void *stream, *attributes;
	unsigned n_attributes;
};

/*
 * DRIVER(name as cuda.h has it, suffix of the symbol, of the form with a stream for each thread,
 * parameters)
 */
#define DRIVERS                                                                                  \
	DRIVER(cuInit, , , (unsigned flags))                                                     \
	DRIVER(cuDeviceGet, , , (int *device, int ordinal))                                      \
	DRIVER(cuDevicePrimaryCtxRetain, , , (void **context, int device))                       \
	DRIVER(cuDevicePrimaryCtxReset, _v2, , (int device))                                     \
	DRIVER(cuCtxSetCurrent, , , (void *context))                                             \
	DRIVER(cuCtxSynchronize, , , (void))                                                     \
	DRIVER(cuModuleLoadData, , , (void **module, const void *image))                         \
	DRIVER(cuModuleGetFunction, , , (void **function, void *module, const char *name))       \
	DRIVER(cuMemAlloc, _v2, , (uint64_t * address, size_t n_bytes))                          \
	DRIVER(cuMemAllocHost, _v2, , (void **address, size_t n_bytes))                          \
	DRIVER(cuMemAllocManaged, , , (uint64_t * address, size_t n_bytes, unsigned flags))      \
	DRIVER(cuMemAllocAsync, , _ptsz, (uint64_t * address, size_t n_bytes, void *stream))     \
	DRIVER(cuMemFree, _v2, , (uint64_t address))                                             \
	DRIVER(cuMemFreeHost, , , (void *address))                                               \
	DRIVER(cuMemFreeAsync, , _ptsz, (uint64_t address, void *stream))                        \
	DRIVER(cuStreamCreate, , , (void **stream, unsigned flags))                              \
	DRIVER(cuStreamBeginCapture, _v2, _ptsz, (void *stream, int mode))                       \
	DRIVER(cuStreamEndCapture, , _ptsz, (void *stream, void **graph))                        \
	DRIVER(cuGraphInstantiateWithFlags, , , (void **exec, void *graph, uint64_t flags))      \
	DRIVER(cuGraphLaunch, , _ptsz, (void *exec, void *stream))                               \
	DRIVER(cuMemcpyHtoD, _v2, _ptds, (uint64_t to, const void *from, size_t n))              \
	DRIVER(cuMemcpyDtoH, _v2, _ptds, (void *to, uint64_t from, size_t n))                    \
	DRIVER(cuMemcpyDtoD, _v2, _ptds, (uint64_t to, uint64_t from, size_t n))                 \
	DRIVER(cuMemcpy, , _ptds, (uint64_t to, uint64_t from, size_t n))                        \
	DRIVER(cuMemcpyAsync, , _ptsz, (uint64_t to, uint64_t from, size_t n, void *stream))     \
	DRIVER(cuMemcpyHtoDAsync, _v2, _ptsz,                                                    \
	       (uint64_t to, const void *from, size_t n, void *stream))                          \
	DRIVER(cuMemcpyDtoHAsync, _v2, _ptsz, (void *to, uint64_t from, size_t n, void *stream)) \
	DRIVER(cuMemcpyDtoDAsync, _v2, _ptsz,                                                    \
	       (uint64_t to, uint64_t from, size_t n, void *stream))                             \
	DRIVER(cuMemsetD8, _v2, _ptds, (uint64_t at, unsigned char value, size_t n))             \
	DRIVER(cuMemsetD16, _v2, _ptds, (uint64_t at, unsigned short value, size_t n))           \
	DRIVER(cuMemsetD32, _v2, _ptds, (uint64_t at, unsigned value, size_t n))                 \
	DRIVER(cuMemsetD2D8, _v2, _ptds,                                                         \
	       (uint64_t at, size_t pitch, unsigned char value, size_t w, size_t h))             \
	DRIVER(cuMemsetD8Async, , _ptsz,                                                         \
	       (uint64_t at, unsigned char value, size_t n, void *stream))                       \
	DRIVER(cuMemsetD32Async, , _ptsz, (uint64_t at, unsigned value, size_t n, void *stream)) \
	DRIVER(cuLaunchKernel, , _ptsz,                                                          \
	       (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,        \
		unsigned bz, unsigned shared, void *stream, void **parameters, void **extra))    \
	DRIVER(cuLaunchKernelEx, , _ptsz,                                                        \
	       (const struct launch *launch, void *f, void **parameters, void **extra))          \
	DRIVER(cuLaunchCooperativeKernel, , _ptsz,                                               \
	       (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,        \
		unsigned bz, unsigned shared, void *stream, void **parameters))

#define DRIVER(name, version, form, parameters)                    \
	extern int name##version parameters __attribute__((weak)); \
	static int(*p_##name) parameters;
DRIVERS
#undef DRIVER

typedef int look_up(const char *name, void **found, int version, uint64_t flags, int *status);

static void find_by_symbol(void)
{
#define DRIVER(name, version, form, parameters) \
	p_##name = name##version;               \
	need(p_##name == NULL, #name);
	DRIVERS
#undef DRIVER
}

static void find_by_dlsym(void *library)
{
#define DRIVER(name, version, form, parameters)               \
	*(void **)&p_##name = dlsym(library, #name #version); \
	need(p_##name == NULL, #name);
	DRIVERS
#undef DRIVER
}

static void find_by_proc(look_up *find, uint64_t flags)
{
#define DRIVER(name, version, form, parameters) \
	NEED(find(#name, (void **)&p_##name, VERSION, flags, NULL));
	DRIVERS
#undef DRIVER
}

static void find(const char *how)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = NULL;
	look_up *by_name = NULL;

	need(library == NULL, "dlopen");
	*(void **)&by_name = dlsym(library, "cuGetProcAddress_v2");
	need(by_name == NULL, "cuGetProcAddress_v2");
	if (!strcmp(how, "symbol")) {
		find_by_symbol();
	} else if (!strcmp(how, "default")) {
		find_by_dlsym(RTLD_DEFAULT);
	} else if (!strcmp(how, "dlsym")) {
		find_by_dlsym(library);
	} else if (!strcmp(how, "proc")) {
		find_by_proc(by_name, 0);
	} else {
		NEED(by_name("cuGetProcAddress", &found, VERSION, 0, NULL));
		*(void **)&by_name = found;
		find_by_proc(by_name, strcmp(how, "ptsz") ? 0 : PER_THREAD_STREAM);
	}
}

static uint64_t on_device[2];
static void *pinned, *function, *other;

static void copy_and_fill(void)
{
	char host[N_BYTES] = {0};

	NEED(p_cuMemcpyHtoD(on_device[0], host, N_BYTES));
	NEED(p_cuMemcpyDtoD(on_device[1], on_device[0], N_BYTES / 2));
	NEED(p_cuMemcpyDtoH(host, on_device[1], N_BYTES / 4));
	NEED(p_cuMemcpy(on_device[1], on_device[0], 100));
	NEED(p_cuMemsetD8(on_device[0], 1, 10));
	NEED(p_cuMemsetD16(on_device[0], 2, 20));
	NEED(p_cuMemsetD32(on_device[0], 3, 30));
	NEED(p_cuMemsetD2D8(on_device[0], 128, 4, 64, 5));
}

static void copy_and_fill_in(void *stream)
{
	NEED(p_cuMemcpyHtoDAsync(on_device[0], pinned, 300, stream));
	NEED(p_cuMemcpyDtoHAsync(pinned, on_device[0], 400, stream));
	NEED(p_cuMemcpyDtoDAsync(on_device[1], on_device[0], 500, stream));
	NEED(p_cuMemcpyAsync(on_device[1], on_device[0], 600, stream));
	NEED(p_cuMemsetD8Async(on_device[0], 5, 700, stream));
	NEED(p_cuMemsetD32Async(on_device[0], 6, 200, stream));
}

static void launch(void *stream, int n)
{
	struct launch like = {
		.grid = {2, 1, 1}, .block = {32, 2, 1}, .shared = 64, .stream = stream};

	for (int i = 0; i < n; i++) {
		NEED(p_cuLaunchKernel(function, 4, 2, 1, 64, 1, 1, 256, stream, NULL, NULL));
		NEED(p_cuLaunchKernelEx(&like, other, NULL, NULL));
	}
	NEED(p_cuLaunchCooperativeKernel(other, 3, 1, 1, 16, 1, 1, 0, stream, NULL));
}

/* What is captured runs when the graph does, twice. */
static void launch_graph(void *stream)
{
	void *graph, *exec;

	NEED(p_cuStreamBeginCapture(stream, 0));
	launch(stream, 1);
	NEED(p_cuStreamEndCapture(stream, &graph));
	NEED(p_cuGraphInstantiateWithFlags(&exec, graph, 0));
	NEED(p_cuGraphLaunch(exec, stream));
	NEED(p_cuGraphLaunch(exec, stream));
}

/* What is left ends with the context. */
static void get_and_give_memory(void *stream)
{
	uint64_t managed, pooled;
	void *host;

	NEED(p_cuMemAllocManaged(&managed, 5 * (size_t)N_BYTES, 1));
	NEED(p_cuMemAllocAsync(&pooled, 3 * (size_t)N_BYTES, stream));
	NEED(p_cuMemAllocHost(&host, 2 * (size_t)N_BYTES));
	NEED(p_cuMemFree(managed));
	NEED(p_cuMemFreeAsync(pooled, stream));
	NEED(p_cuMemFreeHost(host));
}

/* As CUpti_SubscriberParams. */
struct subscriber {
	size_t n_bytes;
	const char *name;
	char *old_name;
	size_t old_name_bytes;
};

static void receive(void *data, int domain, uint32_t id, const void *call)
{
	(void)data, (void)domain, (void)id, (void)call;
}

static void take(const char *name)
{
	int (*subscribe)(void **, void (*)(void *, int, uint32_t, const void *), void *,
			 struct subscriber *);
	struct subscriber parameters = {.n_bytes = sizeof(parameters), .name = name};
	void *library = dlopen("libcupti.so.13", RTLD_NOW), *handle;

	need(library == NULL, "libcupti.so.13");
	/* By its version: past whoever stands before dlsym. */
	*(void **)&subscribe = dlvsym(library, "cuptiSubscribe_v2", "libcupti.so.13");
	need(subscribe == NULL, "cuptiSubscribe_v2");
	NEED(subscribe(&handle, receive, NULL, &parameters));
}

int main(int argc, char **argv)
{
	void *context, *module, *stream;
	int device, n = argc > 2 ? atoi(argv[2]) : 10;

	if (argc > 3)
		take(argv[3]);
	find(argc > 1 ? argv[1] : "dlsym");
	NEED(p_cuInit(0));
	NEED(p_cuDeviceGet(&device, 0));
	NEED(p_cuDevicePrimaryCtxRetain(&context, device));
	NEED(p_cuCtxSetCurrent(context));
	NEED(p_cuModuleLoadData(&module, "code"));
	NEED(p_cuModuleGetFunction(&function, module, "_Z4workPf"));
	NEED(p_cuModuleGetFunction(&other, module, "_Z5otherPf"));
	NEED(p_cuStreamCreate(&stream, 1));
	NEED(p_cuMemAlloc(&on_device[0], N_BYTES));
	NEED(p_cuMemAlloc(&on_device[1], N_BYTES));
	NEED(p_cuMemAllocHost(&pinned, N_BYTES));
	copy_and_fill();
	copy_and_fill_in(stream);
	launch(stream, n);
	launch(NULL, 1);
	launch_graph(stream);
	get_and_give_memory(stream);
	NEED(p_cuCtxSynchronize());
	NEED(p_cuDevicePrimaryCtxReset(device));
	puts("done");
	return 0;
}
