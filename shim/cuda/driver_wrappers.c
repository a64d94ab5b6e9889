/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Wrappers of the driver's entry points for launches (shim/cuda/driver.def) and memory
 * (shim/cuda/driver_memory.def). Each jumps to the next definition unless calls are recorded; then
 * its record_ function does. The jump is a tail call: with CUPTI, stacks are captured further in,
 * and the wrapper is not in them.
 */
#include <stdbool.h>
#include <string.h>

#include "agent/wire/event.h"
#include "shim/cuda/driver.h"
#include "shim/cuda/driver_entries.h"

static inline bool is_unwatched(void)
{
	return __builtin_expect(atomic_load_explicit(&torsh_driver_watch, memory_order_relaxed) ==
					DRIVER_UNWATCHED,
				1);
}

/* ---- memory ---------------------------------------------------------------------------------- */

#define MEMORY(name, parameters_, arguments, type, ...)                                      \
	static __attribute__((noinline)) int record_##name parameters_                       \
	{                                                                                    \
		const void *frame = __builtin_frame_address(0);                              \
		struct driver_memory_use *use = torsh_cuda_memory_use(DRIVER_##name, frame); \
		__typeof__(name) *next = torsh_driver_next(ENTRY_##name);                    \
		int result;                                                                  \
                                                                                             \
		_Static_assert(sizeof(struct type) <= sizeof(use->parameters),               \
			       "parameters of " #name);                                      \
		if (use) {                                                                   \
			memcpy(use->parameters, &(const struct type){__VA_ARGS__},           \
			       sizeof(struct type));                                         \
			torsh_cuda_memory_calling();                                         \
		}                                                                            \
		result = next arguments;                                                     \
		if (use)                                                                     \
			torsh_cuda_memory_called(result, frame);                             \
		return result;                                                               \
	}                                                                                    \
	EXPORT int name parameters_                                                          \
	{                                                                                    \
		__typeof__(name) *next = torsh_driver_next(ENTRY_##name);                    \
                                                                                             \
		return !next		? DRIVER_NOT_INITIALIZED                             \
		       : is_unwatched() ? next arguments                                     \
					: record_##name arguments;                           \
	}
#include "shim/cuda/driver_memory.def"
#undef MEMORY

/* ---- work ------------------------------------------------------------------------------------ */

/* The batch of the call that the thread is recording. */
static _Thread_local struct driver_batch batch_recorded;

static void set_kernel(struct driver_work *work, const void *function, struct driver_shape shape)
{
	work->what = DRIVER_KERNEL;
	work->function = function;
	memcpy(work->grid, shape.grid, sizeof(work->grid));
	memcpy(work->block, shape.block, sizeof(work->block));
	work->shared_bytes = shape.shared_bytes;
	work->is_async = 1;
}

static void set_graph(struct driver_work *work, const void *graph)
{
	work->what = DRIVER_GRAPH;
	work->function = graph;
	work->is_async = 1;
}

static void set_copy(struct driver_work *work, uint32_t direction, uint64_t to, uint64_t from,
		     uint64_t bytes)
{
	work->what = DRIVER_COPY;
	work->direction = direction;
	work->to = to;
	work->from = from;
	work->bytes = bytes;
}

static void set_memcpy_2d(struct driver_work *work, const struct driver_memcpy_2d *copy)
{
	work->what = DRIVER_COPY;
	if (!copy)
		return;
	work->direction = torsh_driver_direction(copy->from.memory, copy->to.memory);
	work->from = copy->from.device;
	work->to = copy->to.device;
	work->bytes = copy->width_bytes * copy->height;
}

static void set_memcpy_3d(struct driver_work *work, const struct driver_memcpy_3d *copy,
			  bool is_peer)
{
	work->what = DRIVER_COPY;
	if (!copy)
		return;
	work->direction =
		is_peer ? COPY_PTOP : torsh_driver_direction(copy->from.memory, copy->to.memory);
	work->from = copy->from.device;
	work->to = copy->to.device;
	work->bytes = copy->width_bytes * copy->height * (copy->depth ? copy->depth : 1);
}

static void set_batch(struct driver_work *work, uint32_t direction, struct driver_batch batch)
{
	work->what = DRIVER_COPY;
	work->direction = direction;
	batch_recorded = batch;
	work->batch = &batch_recorded;
}

static void set_memset(struct driver_work *work, uint64_t to, uint32_t value, uint64_t bytes)
{
	work->what = DRIVER_MEMSET;
	work->to = to;
	work->value = value;
	work->bytes = bytes;
}

static inline void begin(struct driver_work *work, const char *api, void *stream,
			 void *default_stream)
{
	work->api = api;
	work->stream = stream ? stream : default_stream;
	torsh_cuda_launching(work);
}

/*
 * The next definition is looked up at the call: held across the code before, it would be on the
 * program's stack.
 */
#define WORK(name, suffix, parameters, arguments, stream, set)                            \
	static __attribute__((noinline)) int record_##name parameters                     \
	{                                                                                 \
		const void *frame = __builtin_frame_address(0);                           \
		struct driver_work *work = torsh_cuda_work(frame);                        \
		__typeof__(name) *next;                                                   \
		int result;                                                               \
                                                                                          \
		if (work) {                                                               \
			set;                                                              \
			begin(work, #name, stream, DRIVER_STREAM_LEGACY);                 \
		}                                                                         \
		next = torsh_driver_next(ENTRY_##name);                                   \
		result = next arguments;                                                  \
		if (work)                                                                 \
			torsh_cuda_launched(work, result, frame);                         \
		return result;                                                            \
	}                                                                                 \
	EXPORT int name parameters                                                        \
	{                                                                                 \
		__typeof__(name) *next = torsh_driver_next(ENTRY_##name);                 \
                                                                                          \
		return !next		? DRIVER_NOT_INITIALIZED                          \
		       : is_unwatched() ? next arguments                                  \
					: record_##name arguments;                        \
	}                                                                                 \
	static __attribute__((noinline)) int record_##name##suffix parameters             \
	{                                                                                 \
		const void *frame = __builtin_frame_address(0);                           \
		struct driver_work *work = torsh_cuda_work(frame);                        \
		__typeof__(name##suffix) *next;                                           \
		int result;                                                               \
                                                                                          \
		if (work) {                                                               \
			set;                                                              \
			begin(work, #name #suffix, stream, DRIVER_STREAM_PER_THREAD);     \
		}                                                                         \
		next = torsh_driver_next(ENTRY_##name##suffix);                           \
		result = next arguments;                                                  \
		if (work)                                                                 \
			torsh_cuda_launched(work, result, frame);                         \
		return result;                                                            \
	}                                                                                 \
	EXPORT int name##suffix parameters                                                \
	{                                                                                 \
		__typeof__(name##suffix) *next = torsh_driver_next(ENTRY_##name##suffix); \
                                                                                          \
		return !next		? DRIVER_NOT_INITIALIZED                          \
		       : is_unwatched() ? next arguments                                  \
					: record_##name##suffix arguments;                \
	}
#define UNSEEN(name, parameters, arguments)                               \
	EXPORT int name parameters                                        \
	{                                                                 \
		__typeof__(name) *next = torsh_driver_next(ENTRY_##name); \
                                                                          \
		if (next && !is_unwatched())                              \
			torsh_cuda_unrecorded(#name);                     \
		return next ? next arguments : DRIVER_NOT_INITIALIZED;    \
	}
#include "shim/cuda/driver.def"
#undef WORK
#undef UNSEEN
