/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CUDA's driver as its library speaks: cuda.h, declared here so that the agent is built without it; test/unit/cupti_test.c
 * compares with the real header where that is. The agent stands before the entry points by which a program gives a device
 * work (shim/driver.def), wherever it finds them: as symbols, by dlsym, by cuGetProcAddress. Each goes straight on to the
 * driver's own unless it is watched.
 */
#ifndef TORSH_SHIM_DRIVER_H
#define TORSH_SHIM_DRIVER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define DRIVER_LIBRARY "/libcuda.so" /* in the path of what is the driver */

enum driver_result {
	DRIVER_DONE = 0, /* CUDA_SUCCESS */
	DRIVER_NOT_INITIALIZED = 3,
	DRIVER_NOT_READY = 600,
};

enum driver_flag {
	DRIVER_STREAM_NON_BLOCKING = 1, /* CU_STREAM_NON_BLOCKING */
	DRIVER_POINTER_MEMORY_TYPE = 2, /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
	DRIVER_FUNCTION_SHARED_BYTES = 1, /* CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES */
	DRIVER_FUNCTION_LOCAL_BYTES = 3,
	DRIVER_FUNCTION_REGISTERS = 4,
	DRIVER_CAPTURE_RELAXED = 2, /* CU_STREAM_CAPTURE_MODE_RELAXED */
};

enum driver_memory { DRIVER_HOST = 1, DRIVER_DEVICE = 2, DRIVER_ARRAY = 3 }; /* CUmemorytype */

/* The default streams by name: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD. */
#define DRIVER_STREAM_LEGACY ((void *)1)
#define DRIVER_STREAM_PER_THREAD ((void *)2)

/* CUlaunchConfig */
struct driver_launch {
	uint32_t grid[3], block[3], shared_bytes;
	void *stream, *attributes;
	uint32_t n_attributes;
};

/* One end of CUDA_MEMCPY2D_v2. */
struct driver_rect_end {
	size_t x_bytes, y;
	uint32_t memory; /* enum driver_memory */
	uint64_t host, device;
	void *array;
	size_t pitch;
};

struct driver_rect {
	struct driver_rect_end from, to;
	size_t width_bytes, height;
};

/* One end of CUDA_MEMCPY3D_v2 and of CUDA_MEMCPY3D_PEER. */
struct driver_box_end {
	size_t x_bytes, y, z, level;
	uint32_t memory;
	uint64_t host, device;
	void *array, *context;
	size_t pitch, height;
};

struct driver_box {
	struct driver_box_end from, to;
	size_t width_bytes, height, depth;
};

enum driver_what { DRIVER_KERNEL, DRIVER_COPY, DRIVER_MEMSET, DRIVER_GRAPH };

/* What a call gives a device to do. The last fields are the collector's. */
struct driver_work {
	enum driver_what what;
	const char *api;
	void *stream; /* never NULL: the default streams by their names */
	const void *function; /* a kernel's, or an executable graph */
	uint32_t grid[3], block[3], shared_bytes;
	uint32_t direction; /* enum copy_kind; COPY_UNKNOWN: as the addresses say */
	uint32_t value;
	uint64_t to, from, bytes;
	int is_async;

	uint64_t begin_ns; /* CLOCK_MONOTONIC at the call */
	uint32_t correlation;
	int is_captured; /* it becomes a node of a graph, and nothing is done */
	int problem; /* why there are no marks around it: -errno */
	struct device_pair *pair; /* the marks around it, NULL: none */
};

/* The driver's functions that the agent calls, by the names of the symbols; filled by torsh_driver_open. */
struct driver_functions {
#define DRIVER(name, parameters) int(*name) parameters;
#define DRIVER_OPTIONAL(name, parameters) int(*name) parameters;
#include "shim/driver_calls.def"
#undef DRIVER
#undef DRIVER_OPTIONAL
};

extern struct driver_functions torsh_driver;

/* Find the driver among what is loaded. Returns 0, -ENOENT, or -ENOSYS where it lacks a function. */
int torsh_driver_open(void);

/* Keep the driver from being unloaded, if it is there: its addresses are remembered. Not in a hook of dlopen's. */
void torsh_driver_keep(void);

enum driver_watch {
	DRIVER_UNDECIDED, /* as in a new process: the first call decides */
	DRIVER_UNWATCHED,
	DRIVER_WATCHED,
};

/* Written by the collector. */
extern _Atomic uint32_t torsh_driver_watch;

/*
 * Defined by collectors/cuda_events.c. Are the entry points to be stood before at all in this process? The program is
 * about to give a device work: not 0 asks for torsh_cuda_submitted afterwards, with what the driver returned. And it is
 * about to end a context, or (NULL) those of a device.
 */
int torsh_cuda_stands_before_driver(void);
int torsh_cuda_submitting(struct driver_work *work);
void torsh_cuda_submitted(struct driver_work *work, int result);
void torsh_cuda_context_ending(void *context, int device);

/* What a look-up of name that found this is to answer: our own function where it stands before that. */
void *torsh_driver_instead(const char *name, void *found);

/* Is this the name of an entry point that the agent stands before? And is there nothing behind it? */
int torsh_driver_has(const char *name);
int torsh_driver_lacks(const char *name);

/* Is this code of the driver's or of its tools'? They know each other's functions, and would meet us in a circle. */
int torsh_driver_is_own(const void *caller);

#endif
