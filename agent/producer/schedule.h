/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The schedule that TORSH_PROFILER_SCHEDULE asks for, as this process goes through its steps:
 * whether a call that begins now is sent. What tells steps are the program's own marks, else
 * torch.profiler's, else the calls of its first optimizer; the best of them counts, and begins with
 * step 0. Until one was heard everything is sent.
 *
 * Calls that were sent have their ends sent, whatever step it is then, and no others: each thread
 * remembers which of its open calls were.
 */
#ifndef TORSH_AGENT_PRODUCER_SCHEDULE_H
#define TORSH_AGENT_PRODUCER_SCHEDULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/process/config.h"
#include "agent/wire/event.h"

struct producer;

/* Of a process; zeros at its start. */
struct schedule_state {
	_Atomic uint32_t is_announced; /* the schedule was sent */
	_Atomic uint32_t rests; /* calls that begin are not sent */
	_Atomic uint32_t optimizer; /* label of the one whose calls count, 0: none was heard */
	_Atomic uint64_t step; /* enum step_source << 56 | number of the step that goes on */
};

enum open_kind { OPEN_OPERATORS, OPEN_RANGES, N_OPEN_KINDS };

/* What a thread has open: producer->open. */
struct open_calls;

static inline bool torsh_schedule_is_kept(void)
{
	return __builtin_expect(torsh_config.schedule.active != 0, 0);
}

/* What a call is to its end: of equal ones the innermost ends first. Even, and below 2^63. */
typedef uint64_t open_key;

bool torsh_schedule_opens(struct producer *producer, enum open_kind kind, open_key key);
bool torsh_schedule_closes(struct producer *producer, enum open_kind kind, open_key key);

/* Is a call of the producer's thread to be sent that begins now? */
static inline bool torsh_schedule_begin(struct producer *producer, enum open_kind kind,
					open_key key)
{
	return !torsh_schedule_is_kept() || torsh_schedule_opens(producer, kind, key);
}

/* Is its end? Also that of a call which began on another thread. */
static inline bool torsh_schedule_end(struct producer *producer, enum open_kind kind, open_key key)
{
	return !torsh_schedule_is_kept() || torsh_schedule_closes(producer, kind, key);
}

/* Is a moment to be sent that is marked now? */
bool torsh_schedule_is_on(struct producer *producer);

/*
 * A step begins, by the program's mark or torch.profiler's (number: as it is said; UINT64_MAX: it
 * isn't), or one ends with the optimizer of that label. What begins it is sent after this.
 */
void torsh_schedule_step(struct producer *producer, enum step_source by, uint64_t number);
void torsh_schedule_optimizer(struct producer *producer, uint32_t label);

/* The label of the optimizer whose calls count, 0: none was heard. */
uint32_t torsh_schedule_optimizer_label(void);

/* The producer is another thread's from here on. */
void torsh_schedule_reset(struct open_calls *open);

#endif
