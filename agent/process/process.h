/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the agent knows of the process that it lives in. It lies in pages that the kernel hands to a
 * forked child as zeros, so that a child notices at its first event, by whatever call it was made:
 * pid is 0 then.
 */
#ifndef TORSH_AGENT_PROCESS_PROCESS_H
#define TORSH_AGENT_PROCESS_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/producer/channel.h"
#include "agent/producer/producer.h"
#include "agent/producer/schedule.h"

enum agent_state {
	AGENT_UNSTARTED, /* no hook was called yet */
	AGENT_STARTING, /* one thread is at it; hooks pass through */
	AGENT_ON,
	AGENT_OFF, /* asked for, or something failed: hooks pass through for ever */
};

extern _Atomic int torsh_agent_state;

#define N_KEPT_PRODUCERS 8
#define N_KEPT_RINGS CHANNEL_WARM_SLOTS
/* of these, in a process that locks what it maps: there they are memory */
#define N_LOCKED_RINGS 32u

struct process {
	int pid;
	/* the writer's heartbeat at which waiting for it was given up; 0: not stuck */
	_Atomic uint32_t stuck_at;
	struct channel channel;
	struct schedule_state schedule;
	/* shared by threads whose own producer has ended already; NULL until needed */
	struct producer *_Atomic shared;
	struct producer *reserved; /* what shared will be */
	_Atomic bool is_shared_open; /* somebody is opening it */
	_Atomic uint64_t shared_stuck; /* the state in which it was waited for in vain; 0: none */
	struct producer
		*_Atomic kept[N_KEPT_PRODUCERS]; /* of threads that ended: for the next ones */
	/* small ones by slot, where they stay mapped: its thread's, or free for the next one */
	uint8_t *rings[N_KEPT_RINGS];
	_Atomic bool locks_memory; /* new mappings were found locked */
	/* and what may be locked is limited, which the program itself needs */
	_Atomic bool lock_is_limited;
	/* that have memory of their own: a ring, and what is remembered of the stack */
	_Atomic uint32_t n_producers;
	/* bytes of the text area that programs which can't be followed have taken */
	_Atomic uint32_t n_programs_text;
};

extern struct process *torsh_process;

/* Not wiped by fork: where a forked child finds the tables to copy. */
extern struct channel torsh_last_channel;

/*
 * Is the writer dead? What the channel says counts while that is NONE or ATTACHED. Takes a futex
 * call. A writer that this process can't see, from another PID namespace, is never found dead.
 */
bool torsh_agent_is_abandoned(void);

/*
 * Is the calling thread one that shares its memory with the thread that hooks think it is (after
 * vfork)?
 */
bool torsh_agent_is_borrowed(void);

/*
 * From here on the agent makes no system call that the program itself doesn't make, but for memory
 * and futexes.
 */
void torsh_agent_forbid(void);
/* The same, without the note in the report: the parent of this child has it. */
void torsh_agent_forbid_start(void);
bool torsh_agent_is_sandboxed(void);

#endif
