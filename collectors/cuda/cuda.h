/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The device collector: records what CUDA's devices do. This file attaches to CUPTI and detaches
 * from it; the parts are one file each:
 *
 *	cuda_state	whether CUPTI is attached, and losses
 *	cuda_ticks	CLOCK_MONOTONIC, cheaper than the kernel's
 *	cupti/		with CUPTI:
 *	  cuda_calls	callbacks: the API calls of the program
 *	  cuda_buffers	the buffers that CUPTI fills with activity records
 *	  cuda_records	activity records become events
 *	  cuda_clock	CUPTI's timestamps become CLOCK_MONOTONIC
 *	  cuda_flush	fetches the last records, with a time limit
 *	  cuda_tee	copies of records for a second CUPTI client (Kineto)
 *	  cuda_shadow	callbacks for a second CUPTI client
 *	driver/		without CUPTI:
 *	  cuda_events	driver calls
 *	  cuda_pairs	the event pairs that time them
 *	  cuda_launches	one launch as events
 *	  cuda_batches	batched copies
 *	memory/		device memory: allocations, frees, free and total bytes
 *	counters/	hardware counters of kernels and devices
 *
 * CUPTI calls from the program's threads and from its own threads, with locks held: nothing here
 * waits for a foreign lock, calls CUDA or allocates from the program's heap in a callback. CUDA is
 * called only at the end of an API call, when CUPTI holds no lock
 * (collectors/cuda/memory/cuda_memory_info.c). A forked child never calls CUPTI.
 */
#ifndef TORSH_COLLECTORS_CUDA_CUDA_H
#define TORSH_COLLECTORS_CUDA_CUDA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/producer/producer.h"
#include "agent/wire/event.h"
#include "collectors/cuda/cuda_state.h"

/*
 * Whether the agent may call the driver on this thread now: devices are recorded, the process is
 * not ending, no other tool measures, and the thread is in no CUDA call.
 */
bool torsh_cuda_may_call(void);

/*
 * The same where a driver call of the program's begins or has just returned on this thread, perhaps
 * inside of a call of the runtime: the driver may be called there.
 */
bool torsh_cuda_may_call_at_call(void);

/* Send an event of the calling thread, without a stack. */
static inline void torsh_cuda_send(const struct event *event)
{
	torsh_producer_send(event, NULL);
}

/*
 * A launch arrives before the source of device events is chosen: choose it. Does nothing while the
 * agent starts.
 */
void torsh_cuda_first_work(void);

/*
 * A second CUPTI client subscribes before the driver has started: attach the agent first. May start
 * the driver.
 */
void torsh_cuda_before_client(void);

#endif
