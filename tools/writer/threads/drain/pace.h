/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How long the drain thread rests between two passes over the rings: not at all while they fill
 * faster than it reads, else until a producer wakes it because its ring is a quarter full, at most
 * some milliseconds while events arrive, and longer when there are none. Each pass takes a CPU from
 * the program for a moment, so few passes with many events are best.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_PACE_H
#define TORSH_WRITER_THREADS_DRAIN_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/writer/input/target.h"

#define PACE_BUDGET 32768u /* events folded between two reads of the rings */
#define PACE_DEEP_NS 250000000u /* maximum duration of a deep sleep */

struct pace {
	_Atomic uint32_t *wake_word; /* the thread's own futex */
	uint64_t last_active_ns; /* CLOCK_MONOTONIC: something was copied or folded */
	uint64_t next_watch_ns; /* time of the next memory read of any target */
	uint64_t naps_until_ns; /* until then no producer can wake the thread */
	bool was_woken; /* by a producer, in the last rest */
};

/*
 * Rest after a pass. seen: value of *wake_word before the pass; if it has changed there is no
 * sleep. has_request: a request waits, so the rest is short.
 */
void torsh_pace_rest(struct pace *pace, const struct target_pass *pass, uint32_t seen,
		     bool has_request, struct target *const *targets, uint32_t n_targets);

#endif
