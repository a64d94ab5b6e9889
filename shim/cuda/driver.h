/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The ABI of CUDA's driver: cuda.h, declared here so that the agent is built without it;
 * test/unit/shim/cupti_test.c compares with the real header where it is installed. The agent
 * interposes the entry points by which a program launches work (shim/cuda/driver.def) and allocates
 * memory (shim/cuda/driver_memory.def), however they are looked up: as symbols, by dlsym, by
 * cuGetProcAddress. Each calls the driver's own at once unless calls are recorded.
 */
#ifndef TORSH_SHIM_CUDA_DRIVER_H
#define TORSH_SHIM_CUDA_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/cuda/cuda_memory.h"

#define DRIVER_LIBRARY "/libcuda.so" /* in the path of the driver's library */

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

/* The dimensions of a kernel launch. */
struct driver_shape {
	uint32_t grid[3], block[3], shared_bytes;
};

/* CUlaunchConfig */
struct driver_launch {
	uint32_t grid[3], block[3], shared_bytes;
	void *stream, *attributes;
	uint32_t n_attributes;
};

/* One end of CUDA_MEMCPY2D_v2. */
struct driver_memcpy_2d_end {
	size_t x_bytes, y;
	uint32_t memory; /* enum driver_memory */
	uint64_t host, device;
	void *array;
	size_t pitch;
};

struct driver_memcpy_2d {
	struct driver_memcpy_2d_end from, to;
	size_t width_bytes, height;
};

/* One end of CUDA_MEMCPY3D_v2 and of CUDA_MEMCPY3D_PEER. */
struct driver_memcpy_3d_end {
	size_t x_bytes, y, z, level;
	uint32_t memory;
	uint64_t host, device;
	void *array, *context;
	size_t pitch, height;
};

struct driver_memcpy_3d {
	struct driver_memcpy_3d_end from, to;
	size_t width_bytes, height, depth;
};

/* CUmemcpy3DOperand */
struct driver_operand {
	int type; /* DRIVER_OPERAND_ARRAY, or an address */
	union {
		uint64_t address, array;
		uint64_t words[4];
	};
};

#define DRIVER_OPERAND_ARRAY 2 /* CU_MEMCPY_OPERAND_TYPE_ARRAY */

/* CUDA_MEMCPY3D_BATCH_OP: in elements, which are those of the array, or bytes. */
struct driver_memcpy_3d_copy {
	struct driver_operand from, to;
	size_t width, height, depth;
	int order;
	unsigned flags;
};

/* CUmemDecompressParams: one decompression. */
struct driver_decompress {
	size_t from_bytes, to_bytes;
	void *done, *from, *to;
	int algorithm;
	char padding[20];
};

/*
 * The operations of one call: n of the one that is set. The program's memory, until the call has
 * returned.
 */
struct driver_batch {
	size_t n;
	const uint64_t *to, *from;
	const size_t *sizes;
	const struct driver_memcpy_3d_copy *copies_3d;
	const struct driver_decompress *decompressions;
};

enum driver_what { DRIVER_KERNEL, DRIVER_COPY, DRIVER_MEMSET, DRIVER_GRAPH };

/* CUipcMemHandle, which is passed by value. */
struct driver_ipc {
	char bytes[64];
};

/* The entry points of shim/cuda/driver_memory.def. */
enum driver_memory_call {
#define MEMORY(name, ...) DRIVER_##name,
#include "shim/cuda/driver_memory.def"
#undef MEMORY
	N_DRIVER_MEMORY_CALLS
};

/* The parameters of a call about memory: one of the structs of shim/cuda/cuda_memory.h. */
struct driver_memory_use {
	uint64_t parameters[4];
};

/* A context ends, if the call succeeds. The last field is the collector's. */
struct driver_ending {
	void *context; /* NULL: the device's primary context */
	int device; /* of a primary context, otherwise -1 */
	bool is_release; /* it ends only if this was the last reference */

	uint32_t number; /* of the context, 0: its creation was not recorded */
};

/* The work that a call starts. The last fields are the collector's. */
struct driver_work {
	const char *api;
	enum driver_what what;
	void *stream; /* never NULL: default streams have their handles */
	const void *function; /* a kernel's, or an executable graph */
	uint32_t grid[3], block[3], shared_bytes;
	uint32_t direction; /* enum copy_kind; COPY_UNKNOWN: derived from the addresses */
	uint32_t value;
	uint64_t to, from, bytes;
	/* The collector computes direction and bytes from it; NULL: not a batch. */
	const struct driver_batch *batch;
	bool is_async;

	uint32_t label; /* of api */
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC at the call, and when it returned */
	uint32_t correlation;
	bool is_captured; /* it becomes a node of a graph and does not run */
	int problem; /* why it has no event pair: -errno */
	struct device_pair *pair; /* the events around it, NULL: none */
};

/*
 * The driver's functions that the agent calls, by the names of the symbols; filled by
 * torsh_driver_open.
 */
struct driver_functions {
#define DRIVER(name, parameters) int(*name) parameters;
#define DRIVER_OPTIONAL(name, parameters) int(*name) parameters;
#include "shim/cuda/driver_calls.def"
#undef DRIVER
#undef DRIVER_OPTIONAL
};

extern struct driver_functions torsh_driver;

/* The enum copy_kind from one enum driver_memory to another. */
uint32_t torsh_driver_direction(uint32_t from, uint32_t to);

/*
 * Look up the driver functions among the loaded objects. Returns 0, -ENOENT, or -ENOSYS where the
 * driver lacks one.
 */
int torsh_driver_open(void);

/*
 * Keep the driver from being unloaded, if it is loaded: its addresses are cached. Not from a
 * wrapper of dlopen.
 */
void torsh_driver_keep(void);

enum driver_watch {
	DRIVER_UNDECIDED, /* as in a new process: the first call decides */
	DRIVER_UNWATCHED,
	DRIVER_WATCHED,
};

/* Written by the collector. */
extern _Atomic uint32_t torsh_driver_watch;

/*
 * Defined in collectors/cuda/cuda.c and driver/cuda_events.c. Whether the entry points are
 * interposed at all in this process; the program is about to end a context, and did.
 */
bool torsh_cuda_interposes_driver(void);

/* The program is about to end a context. Fills in the number; defined in cuda_events.c. */
void torsh_cuda_context_ending(struct driver_ending *ending);

/* The call returned result: on success the context has ended. */
void torsh_cuda_context_ended(const struct driver_ending *ending, int result);

/*
 * Defined in collectors/cuda/driver/cuda_events.c. A launch begins in the wrapper with this frame.
 * Returns NULL where it is not recorded, else the zeroed record to fill in; it is thread-local, as
 * a wrapper uses little stack. Then exactly one torsh_cuda_launching follows, and after the
 * driver's function torsh_cuda_launched with its result.
 */
struct driver_work *torsh_cuda_work(const void *frame);

/* The driver's function is about to be called, with the record filled in. */
void torsh_cuda_launching(struct driver_work *work);

/* The driver's function returned result: sends the launch, with the stack above frame. */
void torsh_cuda_launched(struct driver_work *work, int result, const void *frame);

/* Defined in collectors/cuda/driver/cuda_launches.c. Work by this entry point is not recorded. */
void torsh_cuda_unrecorded(const char *name);

/*
 * Defined in collectors/cuda/memory/cuda_memory_driver.c, in the same way, for calls about memory.
 */
struct driver_memory_use *torsh_cuda_memory_use(enum driver_memory_call call, const void *frame);

/* The driver's function is about to be called, with the parameters filled in. */
void torsh_cuda_memory_calling(void);

/* The driver's function returned result: sends the event, with the stack above frame. */
void torsh_cuda_memory_called(int result, const void *frame);

/* The result of a lookup of name that found this address: the wrapper if it is interposed. */
void *torsh_driver_instead(const char *name, void *found);

/*
 * Whether the agent interposes an entry point of this name; and whether it has no next definition.
 */
bool torsh_driver_has(const char *name);

/* Whether the agent interposes an entry point of this name that has no next definition. */
bool torsh_driver_lacks(const char *name);

/*
 * Whether this code belongs to the driver or its tools. They resolve each other's functions, and
 * would reach the wrappers in a circle.
 */
bool torsh_driver_is_own(const void *caller);

#endif
