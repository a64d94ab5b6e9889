/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* State shared by all parts of the counters: whether they are on, CUPTI's profiler, and losses. */
#ifndef TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_STATE_H
#define TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/event.h"

/* Whether counters are requested and were not refused. */
bool torsh_cuda_counters_are_on(void);

/* Turn counters on, or temporarily off; after a refusal they stay off. */
void torsh_counters_turn(bool on);

/* Report that counters are off: an event with the reason, and a note. */
void torsh_counters_send_off(const char *reason);

/* Send the sums so far. */
void torsh_counters_send_losses(void);

/* Sums for the recording; any thread. */
struct counter_losses {
#define LOSS(name) _Atomic uint64_t name;
	COUNTER_LOSSES
#undef LOSS
};

extern struct counter_losses torsh_counter_losses;

#define COUNTER_COUNT(field) \
	atomic_fetch_add_explicit(&torsh_counter_losses.field, 1, memory_order_relaxed)

/* Send an event of the calling thread. */
void torsh_counters_send(const struct event *event);

/*
 * Initialise CUPTI's profiler, once per process and before any other call of it; never inside
 * cuInit. Returns 0, or -1 if CUPTI refused.
 */
int torsh_counters_initialise(void);

/*
 * Turn counters off for the rest of the process and report why, once. what: the step that failed;
 * result: CUPTI's.
 */
void torsh_counters_refuse(const char *what, int result);

/* Deinitialise CUPTI's profiler if it was initialised. */
void torsh_counters_deinitialise(void);

#endif
