/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Event slots by context: the events of the CUDA row (collectors/device/device_cuda.c) belong to
 * the context in which they were created. Slots never move. Also the agent's own driver calls in
 * such a context.
 */
#ifndef TORSH_COLLECTORS_DEVICE_DEVICE_CUDA_EVENT_SLOTS_H
#define TORSH_COLLECTORS_DEVICE_DEVICE_CUDA_EVENT_SLOTS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct driver_event;

/* A comparison of the device's clock with CLOCK_MONOTONIC. */
struct cuda_comparison {
	void *mark, *after; /* the driver's events */
	uint64_t moment_ns;
};

/* The events of one context. */
struct cuda_event_slots {
	void *_Atomic handle; /* NULL: the context is destroyed */
	_Atomic uint32_t generation; /* raised when the context's events become invalid */
	struct cuda_event_slots *following; /* in the list of all slots */
	uint32_t number; /* from 1 on */
	int device;
	uint32_t id;
	/* of any generation; under the lock of collectors/device/device_cuda.c */
	struct driver_event *spares;
	/*
	 * The rest belongs to the holder of the poll lock in collectors/cuda/driver/cuda_events.c.
	 */
	void *stream; /* our own, for comparisons */
	struct cuda_comparison comparison, next;
	uint64_t due_ns;
};

/* Store the CUresult of a failed driver call, for torsh_device_cuda_problem on this thread. */
void torsh_cuda_last_error(int result);

/* A CUresult as 0 or -EIO. */
static inline int torsh_cuda_check(int result)
{
	if (!result)
		return 0;
	torsh_cuda_last_error(result);
	return -EIO;
}

/* State of the thread while the agent calls the driver in a context of the program. */
struct cuda_visit {
	bool is_pushed;
	int mode;
};

/*
 * Make the context current, in relaxed capture mode so that captures elsewhere are not broken.
 * Returns 0 or -EIO; each success is followed by its end on the same thread.
 */
int torsh_cuda_visit(struct cuda_visit *visit, void *context);

/* Restore the context and capture mode of before the visit. */
void torsh_cuda_visit_end(struct cuda_visit *visit);

/*
 * The event slots of the stream's context, created if needed. NULL: the context is unknown, or
 * there is no memory.
 */
struct cuda_event_slots *torsh_cuda_event_slots_of(void *stream);

#endif
