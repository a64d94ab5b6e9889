/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The inside of cuda_events.h: cuda_events.c has the calls of the program, from their begin to the
 * end of the process, cuda_pairs.c the pairs of events that time them.
 */
#ifndef TORSH_COLLECTORS_CUDA_DRIVER_CUDA_EVENTS_PARTS_H
#define TORSH_COLLECTORS_CUDA_DRIVER_CUDA_EVENTS_PARTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "collectors/device/device_cuda.h"
#include "shim/cuda/driver.h"
#include "shim/hooks.h"

/* In pages that are zeroed in a forked child: the parent's driver handles are invalid there. */
struct cuda_watch {
	_Atomic uint32_t is_on, has_marks, is_polling, is_ending, correlation, n_pending,
		no_marks_reason;
	_Atomic uint64_t due_ns, n_timed;
};

extern struct cuda_watch *torsh_cuda_watch; /* NULL until driver calls are recorded */

/* State while the driver works for the agent, not for the program. */
struct quiet {
	void *outer;
	int mode;
};

/*
 * A capture in progress elsewhere in the program would forbid some of the agent's calls: in relaxed
 * mode it doesn't.
 */
static inline struct quiet enter_driver(void)
{
	struct quiet quiet = {.outer = torsh_heap_enter_allocator(),
			      .mode = DRIVER_CAPTURE_RELAXED};

	torsh_driver.cuThreadExchangeStreamCaptureMode(&quiet.mode);
	return quiet;
}

static inline void leave_driver(struct quiet *quiet)
{
	torsh_driver.cuThreadExchangeStreamCaptureMode(&quiet->mode);
	torsh_heap_leave_allocator(quiet->outer);
}

/* Take a spare pair of events, or create one; NULL without memory. */
struct device_pair *torsh_cuda_take_pair(void);

/* Return a pair to the spare ones. */
void torsh_cuda_give_pair(struct device_pair *pair);

/* Work is in progress between the events of the pair: polls find out when it is done. */
void torsh_cuda_add_pending(struct device_pair *pair);

/* Try to take the poll lock, without waiting. Returns not 0 if the caller holds it now. */
int torsh_cuda_take_poll(void);

/* Release the poll lock. */
void torsh_cuda_give_poll(void);

/* Record each pending pair of work that is done. The caller holds the poll lock. */
void torsh_cuda_poll_all(void);

#endif
