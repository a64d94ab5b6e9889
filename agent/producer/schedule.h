/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * TORSH_PROFILER_SCHEDULE and pauses applied to this process: whether a call that begins now is
 * sent. Steps come from the program's own marks, else from torch.profiler, else from the calls of
 * its first optimizer; the best source counts, and starts at step 0. Before the first step
 * everything is sent.
 *
 * The end of a call is sent exactly if its beginning was, whatever step it is by then: each thread
 * remembers which of its open calls were sent. Without a schedule it does so from a call that
 * begins in a pause until no such call is open.
 */
#ifndef TORSH_AGENT_PRODUCER_SCHEDULE_H
#define TORSH_AGENT_PRODUCER_SCHEDULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/process/config.h"
#include "agent/producer/producer.h"
#include "agent/wire/event.h"
#include "shim/pause.h"

/* One per process; starts zeroed. */
struct schedule_state {
	_Atomic uint32_t is_announced; /* the schedule has been sent */
	_Atomic uint32_t rests; /* calls that begin are not sent */
	_Atomic uint32_t optimizer; /* label of the optimizer that counts steps, 0: none yet */
	_Atomic uint64_t step; /* enum step_source << 56 | number of the current step */
};

enum open_kind { OPEN_OPERATORS, OPEN_RANGES, N_OPEN_KINDS };

/* The open calls of a thread: producer->open. */
struct open_calls;

static inline bool torsh_schedule_is_kept(void)
{
	return __builtin_expect(torsh_config.schedule.active != 0, 0);
}

/* Whether the open calls of the producer's thread matter now. */
static inline bool torsh_schedule_is_applied(const struct producer *producer)
{
	return torsh_schedule_is_kept() || torsh_recording_is_paused() ||
	       __builtin_expect(producer->n_unsent != 0, 0);
}

/* Identifies a call at its end; of equal keys the innermost ends first. Even, and below 2^63. */
typedef uint64_t open_key;

/*
 * Out-of-line part of torsh_schedule_begin, for a process with a schedule or a pause: stores the
 * call as open. Returns whether it is sent.
 */
bool torsh_schedule_opens(struct producer *producer, enum open_kind kind, open_key key);

/*
 * Out-of-line part of torsh_schedule_end: removes the innermost open call with this key. Returns
 * whether its begin was sent.
 */
bool torsh_schedule_closes(struct producer *producer, enum open_kind kind, open_key key);

/* Whether to send a call that begins now on the producer's thread. */
static inline bool torsh_schedule_begin(struct producer *producer, enum open_kind kind,
					open_key key)
{
	return !torsh_schedule_is_applied(producer) || torsh_schedule_opens(producer, kind, key);
}

/* Whether to send the call's end; also for a call that began on another thread. */
static inline bool torsh_schedule_end(struct producer *producer, enum open_kind kind, open_key key)
{
	return !torsh_schedule_is_applied(producer) || torsh_schedule_closes(producer, kind, key);
}

/* Whether to send an instant event that is marked now. */
bool torsh_schedule_is_on(struct producer *producer);

/*
 * A step begins, by the program's mark or torch.profiler's (number: as given, or UINT64_MAX), or
 * ends with the optimizer of that label. The event that begins it is sent after this call.
 */
void torsh_schedule_step(struct producer *producer, enum step_source by, uint64_t number);

/* A call of the optimizer with this label has ended; the first label seen counts steps. */
void torsh_schedule_optimizer(struct producer *producer, uint32_t label);

/* The label of the optimizer that counts steps, 0: none yet. */
uint32_t torsh_schedule_optimizer_label(void);

/* Drop the open calls: another thread takes over the producer. */
void torsh_schedule_reset(struct producer *producer);

#endif
