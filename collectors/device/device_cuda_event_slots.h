/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The contexts in which the CUDA row (collectors/device/device_cuda.c) has its events, each in a
 * place that stays where it is, and the agent's own calls of the driver in them.
 */
#ifndef TORSH_COLLECTORS_DEVICE_DEVICE_CUDA_EVENT_SLOTS_H
#define TORSH_COLLECTORS_DEVICE_DEVICE_CUDA_EVENT_SLOTS_H

#include <errno.h>
#include <stdint.h>

struct driver_event;

/* Both clocks at one moment. */
struct cuda_comparison {
	void *mark, *after; /* the driver's events */
	uint64_t moment_ns;
};

/* A context that was seen. */
struct cuda_event_slots {
	void *_Atomic handle; /* NULL: it is gone */
	_Atomic uint32_t generation; /* counts how often what was made in it became invalid */
	struct cuda_event_slots *following; /* in the list of all */
	uint32_t number; /* from 1 on */
	int device;
	uint32_t id;
	/* of any generation; under the lock of collectors/device/device_cuda.c */
	struct driver_event *spares;
	/* The rest is of who holds the poll in collectors/cuda/cuda_events.c. */
	void *stream; /* our own, for comparisons */
	struct cuda_comparison comparison, next;
	uint64_t due_ns;
};

/* The driver refused with this result: torsh_device_cuda_problem says it of this thread. */
void torsh_cuda_last_error(int result);

/* A result of the driver's as 0 or -EIO. */
static inline int torsh_cuda_check(int result)
{
	if (!result)
		return 0;
	torsh_cuda_last_error(result);
	return -EIO;
}

/* The agent's calls in a context of the program's. */
struct cuda_visit {
	int is_pushed, mode;
};

/*
 * Relaxed: what would break a capture that the program has under way elsewhere is allowed. Returns
 * 0 or -EIO; each one that succeeds has its end, on the same thread.
 */
int torsh_cuda_visit(struct cuda_visit *visit, void *context);
void torsh_cuda_visit_end(struct cuda_visit *visit);

/*
 * That of the stream's context, new where it wasn't seen. NULL: it isn't known, or there is no
 * memory.
 */
struct cuda_event_slots *torsh_cuda_event_slots_of(void *stream);

#endif
