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
	/*
	 * to be armed (agent/session/dormant.h); without torsh_process, unless it was recorded
	 * before
	 */
	AGENT_DORMANT,
};

extern _Atomic int torsh_agent_state;

/* It has been recorded, or the process that forked it: what a start does once is done. */
extern bool torsh_agent_has_begun;

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
	/*
	 * How often it began to rest and was armed again (agent/session/rest.h): odd while it rests
	 */
	_Atomic uint32_t generation;
	/* of a process that may rest: those with a slot; a thread that changes the list holds it */
	struct producer *producers;
	_Atomic uint32_t producers_held;
};

extern struct process *torsh_process;

/* Survives fork: a forked child copies the tables of its parent from here. */
extern struct channel torsh_last_channel;

/* Another number in a forked child, and in each recording of a process that rests in between. */
static inline int torsh_process_mark(void)
{
	uint32_t generation =
		atomic_load_explicit(&torsh_process->generation, memory_order_relaxed);

	return torsh_process->pid + (int)(generation << 22); /* pids are lower */
}

/* Whether the process is recorded, or was when it was forked. */
static inline bool torsh_agent_is_on(void)
{
	return atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON;
}

/* Whether the writer has ended by `torsh stop`, and this process does not rest yet. */
bool torsh_agent_has_ended(void);

/*
 * Whether this process may rest (agent/session/rest.h): not where the kernel or a device's runtime
 * would go on to collect for it. Its session is paused instead.
 */
bool torsh_agent_may_rest(void);

/* It may not from now on. */
void torsh_agent_keep_on(void);

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
