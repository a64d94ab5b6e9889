/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who ends the waits of threads: a table by what is waited for. A thread that is about to wait
 * enters it; who ends waits for an object in which a thread is leaves a record of itself; the
 * waiter takes the record after its wait. All of it is lock-free, and may be called in signal
 * handlers.
 *
 * A waker is returned only where all records within the wait are of one thread. A record whose call
 * did not end the wait (what it was for went to a thread that did not wait, the waiter wasn't there
 * yet, or the call is still to come) is then of the same thread, or is beside the waker's own. The
 * moment is that of its last record. Not seen is the call of a thread that found no waiter just
 * before one entered, and that was then interrupted until the waiter waited.
 */
#ifndef TORSH_COLLECTORS_WAITS_WAKES_H
#define TORSH_COLLECTORS_WAITS_WAKES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/hooks.h"

#define WAKE_SLOTS 1024u /* a power of two */
#define WAKE_ONES 5u

/* Zeroed, or of waiters for one object. */
struct wake_slot {
	/* The object << 16, WAKE_IN_MAKING, and the number of waiters; without these it is free. */
	_Atomic uint64_t owner;
	/* Records: thread, time, and bits of the object; 0: none. */
	_Atomic uint64_t all; /* of all that wait, or of the next one, whoever it is: the last */
	_Atomic uint64_t ones[WAKE_ONES]; /* of one waiter each, which removes it */
	_Atomic uint64_t replaced; /* the last of these that gave way to another thread's */
};

#define WAKE_IN_MAKING 0x8000u /* its first waiter has not begun to wait: it takes nothing else */
#define WAKE_WAITERS 0x7fffu

_Static_assert(sizeof(struct wake_slot) == 64, "a line of the cache");

struct wake {
	uint32_t tid; /* 0: not known */
	uint64_t at_ns;
};

/*
 * A thread is about to wait. Returns the number of the slot + 1; 0: none is free. The slot is left
 * once; the object must be passed again.
 */
uint32_t torsh_wakes_enter(struct wake_slot *slots, uint64_t object);
void torsh_wakes_leave(struct wake_slot *slots, uint32_t place, uint64_t object);

/* Returns whether a thread waits for the object, or is about to: a record would be of use. */
static inline bool torsh_wakes_has_waiter(const struct wake_slot *slots, uint64_t object)
{
	uint64_t hash = object * UINT64_C(0x9e3779b97f4a7c15);
	uint64_t owner = atomic_load_explicit(&slots[hash >> 32 & (WAKE_SLOTS - 1)].owner,
					      memory_order_relaxed);

	return owner >> 16 == object && (owner & WAKE_WAITERS) && !(owner & WAKE_IN_MAKING);
}

/* Leave the record of a thread that is about to end waits for the object. */
void torsh_wakes_post(struct wake_slot *slots, uint64_t object, enum wake_whom whom, uint32_t tid,
		      uint64_t now_ns);

/*
 * Within a slot that was entered at begin_ns: the wait succeeded. is_lock: the object was a lock
 * that the thread has now, which its last owner released.
 */
struct wake torsh_wakes_take(struct wake_slot *slots, uint32_t place, uint64_t object, bool is_lock,
			     uint64_t begin_ns, uint64_t now_ns);

#endif
