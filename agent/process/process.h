/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The agent's state of one process. It lies in pages that fork zeroes in the child, so that a child
 * detects itself at its first event, whichever call made it: pid is 0.
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
	AGENT_OFF, /* turned off by the user, or something failed: hooks pass through for ever */
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
	/* shared by threads that have closed their own producer; NULL until needed */
	struct producer *_Atomic shared;
	struct producer *reserved; /* opened as shared on first use */
	_Atomic bool is_shared_open; /* a thread opens it, or has */
	_Atomic uint64_t shared_stuck; /* the state at which a wait for it timed out; 0: none */
	struct producer
		*_Atomic kept[N_KEPT_PRODUCERS]; /* of threads that ended: for the next ones */
	/* small ones by slot, where they stay mapped: its thread's, or free for the next one */
	uint8_t *rings[N_KEPT_RINGS];
	_Atomic bool locks_memory; /* new mappings were found locked */
	/* and what may be locked is limited, which the program itself needs */
	_Atomic bool lock_is_limited;
	/* producers with a ring and a stack cache of their own */
	_Atomic uint32_t n_producers;
	/* bytes of the text area that programs which can't be followed have taken */
	_Atomic uint32_t n_programs_text;
};

extern struct process *torsh_process;

/* Survives fork: a forked child copies the tables of its parent from here. */
extern struct channel torsh_last_channel;

/*
 * Whether the writer is dead. Only meaningful while the channel's writer_state is NONE or ATTACHED.
 * Takes a futex call. A writer in another PID namespace is never found dead.
 */
bool torsh_agent_is_abandoned(void);

/*
 * Whether the calling thread runs on the memory and thread pointer of another one, as after vfork.
 */
bool torsh_agent_is_borrowed(void);

/*
 * From here on the agent makes no system call beyond memory and futexes that the program does not
 * make itself.
 */
void torsh_agent_forbid(void);
/* The same, without the note in the report: the parent of this child has it. */
void torsh_agent_forbid_start(void);
bool torsh_agent_is_sandboxed(void);

#endif
