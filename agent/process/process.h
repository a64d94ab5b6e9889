/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The agent's state of one process. It lies in pages that fork zeroes in the child, so that a child
 * detects itself at its first event, whichever call made it: its pid is 0.
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
	AGENT_UNSTARTED, /* no hook has run yet */
	AGENT_STARTING, /* one thread is starting it; hooks pass through */
	AGENT_ON,
	/* off for the rest of the process: turned off by the user, or something failed */
	AGENT_OFF,
	/* to be armed (agent/session/dormant.h); without torsh_process */
	AGENT_DORMANT,
};

extern _Atomic int torsh_agent_state;

#define N_KEPT_PRODUCERS 8
#define N_KEPT_RINGS CHANNEL_WARM_SLOTS
/* rings in a process that locks what it maps, where each takes physical memory */
#define N_LOCKED_RINGS 32u

struct process {
	int pid;
	/* the writer's heartbeat when a producer gave up waiting for it; 0: not stuck */
	_Atomic uint32_t stuck_at;
	struct channel channel;
	struct schedule_state schedule;
	/* shared by threads that have closed their own producer; NULL until needed */
	struct producer *_Atomic shared;
	struct producer *reserved; /* opened as the shared one on first use */
	_Atomic bool is_shared_open; /* a thread is opening it, or has opened it */
	_Atomic uint64_t shared_stuck; /* its state when a wait for it timed out; 0: none */
	struct producer *_Atomic kept[N_KEPT_PRODUCERS]; /* of threads that ended, for new ones */
	/* small rings by slot, which stay mapped: in use by a thread, or free */
	uint8_t *rings[N_KEPT_RINGS];
	_Atomic bool locks_memory; /* new mappings were found locked */
	/* the amount that may be locked is limited, and the program needs it */
	_Atomic bool lock_is_limited;
	/* producers with a ring and a stack cache of their own */
	_Atomic uint32_t n_producers;
	/* bytes of the text area taken by programs that can't be followed */
	_Atomic uint32_t n_programs_text;
};

extern struct process *torsh_process;

/* Survives fork: a forked child copies the tables of its parent from here. */
extern struct channel torsh_last_channel;

/* Whether the process waits to be armed. */
static inline bool torsh_agent_is_dormant(void)
{
	return atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_DORMANT;
}

/*
 * Whether the writer is dead. Only valid while the channel's writer_state is NONE or ATTACHED.
 * Takes a futex call. A writer in another PID namespace never counts as dead.
 */
bool torsh_agent_is_abandoned(void);

/* Whether the calling thread runs on another thread's memory and thread pointer, as after vfork. */
bool torsh_agent_is_borrowed(void);

/*
 * From now on the agent makes no system calls but for memory and futexes, unless the program makes
 * them itself.
 */
void torsh_agent_forbid(void);
/* The same, without the note in the report: the report of the child's parent has it. */
void torsh_agent_forbid_start(void);

/* Whether torsh_agent_forbid was called in this process. Any thread. */
bool torsh_agent_is_sandboxed(void);

#endif
