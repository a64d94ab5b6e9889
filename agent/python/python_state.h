/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The interpreter's state of the calling thread. Inlined into each capture. */
#ifndef TORSH_AGENT_PYTHON_PYTHON_STATE_H
#define TORSH_AGENT_PYTHON_PYTHON_STATE_H

#include <pthread.h>

#include "agent/modules/memory_probe.h"
#include "agent/python/python_reader.h"

/* Another thread's state may be freed during the look-up. */
static inline bool is_own(uintptr_t state)
{
	uintptr_t locate = state + torsh_cpython.at.tstate_thread_id;

	return state && torsh_probe(locate) && *(const pthread_t *)locate == pthread_self();
}

/*
 * Before 3.12 a thread that runs a second interpreter still reports its first state. The running
 * state is the one that holds the lock, if it is this thread's; without the lock it is the one that
 * held it last, as long as that has frames.
 */
static __attribute__((noinline, unused)) uintptr_t running_state(uintptr_t *second_state,
								 uintptr_t first, uintptr_t holder)
{
	if (torsh_cpython.first_interpreter() == torsh_cpython.main_interpreter())
		return first;
	if (is_own(holder))
		*second_state = holder;
	else if (!is_own(*second_state) || !innermost_frame(*second_state))
		*second_state = 0;
	return *second_state ? *second_state : first;
}

/*
 * The state of the calling thread, 0 if it has none. *second_state is kept from one capture of the
 * thread to the next, at first 0.
 */
static inline uintptr_t own_state(uintptr_t *second_state, bool is_main)
{
	uintptr_t state, holder;

	if (!is_main && torsh_cpython.is_finalizing())
		return 0;
	state = (uintptr_t)torsh_cpython.this_thread();
	if (!torsh_cpython.holder || !state)
		return state;
	holder = (uintptr_t)torsh_cpython.holder();
	if (!is_likely(holder == state))
		return running_state(second_state, state, holder);
	*second_state = 0;
	return state;
}

#endif
