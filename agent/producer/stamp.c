/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/producer/stamp.h"

#include <stdbool.h>
#include <time.h>

#include "shim/hot.h"

/*
 * A change of owner costs two producers a cache miss or two each, a fence costs one producer a
 * tenth of that: with fewer than some twenty events between two changes fences are cheaper.
 */
#define NEAR_TICKS 4096u /* 1 to 2 µs */
#define SHARED_TICKS (UINT64_C(1) << 18) /* about 100 µs, after which ownership is tried again */
#define IS_SHARED 1u
/* between readings that count as simultaneous; above it the thread was interrupted */
#define NEAR_ENOUGH_TICKS (UINT64_C(1) << 17)
#define TRIES 1000u

_Atomic uint64_t torsh_stamp_owner;
HOT _Atomic int torsh_stamp_is_slow;

static _Atomic uint64_t no_lift;
static struct clock_reference no_reference;

static _Atomic uint64_t *lift_word = &no_lift;
static const struct clock_reference *reference = &no_reference;

static _Atomic uint64_t changed_at;
static _Atomic uint64_t ahead; /* at most, of lifted stamps: the sum of the lifts' error bounds */

/*
 * Whether the reading with this lift is high enough. If not it is taken again, perhaps with more
 * lift.
 */
static bool is_high_enough(const struct clock_moment *known, uint64_t now, uint64_t lift)
{
	struct timespec time;
	uint64_t again, missing, doubt, more;

	clock_gettime(CLOCK_MONOTONIC, &time);
	again = torsh_cpu_ticks_ordered() + lift;
	if (again - now > NEAR_ENOUGH_TICKS)
		return false;
	missing = torsh_clock_missing(
		known, now, (uint64_t)time.tv_sec * CLOCK_NS_A_SECOND + (uint64_t)time.tv_nsec,
		&doubt);
	if (!missing)
		return true;
	/* Stamps may already be ahead by all earlier error bounds, and must stay above. */
	more = missing + atomic_fetch_add_explicit(&ahead, doubt, memory_order_relaxed) + doubt;
	/* If another thread has lifted meanwhile, once is enough. */
	if (atomic_compare_exchange_strong(lift_word, &lift, lift + more))
		atomic_store_explicit(&torsh_stamp_is_slow, 1, memory_order_relaxed);
	return false;
}

/* A reading after earlier loads have completed, among them that of the owner. */
static uint64_t read_ordered(uint64_t *lift)
{
	*lift = atomic_load_explicit(lift_word, memory_order_acquire);
	return torsh_cpu_ticks_ordered() + *lift;
}

static uint64_t read_checked(void)
{
	uint64_t now, lift;

	for (uint32_t i = 0; i < TRIES; i++) {
		/* Loaded before the reading, so not one that is published later. */
		struct clock_moment known = torsh_clock_read(reference);

		now = read_ordered(&lift);
		if (!known.ticks_a_second || is_high_enough(&known, now, lift))
			break;
	}
	return now;
}

static uint64_t next_owner(const struct producer *producer, uint64_t owner, uint64_t now)
{
	uint64_t age = now - atomic_load_explicit(&changed_at, memory_order_relaxed);

	return !(owner & IS_SHARED) && age < NEAR_TICKS ? (now + SHARED_TICKS) << 1 | IS_SHARED
							: (uintptr_t)producer;
}

uint64_t torsh_stamp_take(const struct producer *producer)
{
	uint64_t owner = atomic_load_explicit(&torsh_stamp_owner, memory_order_relaxed), now, lift;

	if (!TORSH_CPU_LOADS_IN_ORDER)
		return read_ordered(&lift);
	do {
		/*
		 * After the load: everything that an earlier owner read, it read before this
		 * producer owned the stamps.
		 */
		now = read_ordered(&lift);
		if (owner & IS_SHARED && (owner >> 1) - now - 1 < SHARED_TICKS)
			return now;
		now = read_checked();
	} while (!atomic_compare_exchange_weak(&torsh_stamp_owner, &owner,
					       next_owner(producer, owner, now)));
	atomic_store_explicit(&changed_at, now, memory_order_relaxed);
	return now;
}

uint64_t torsh_stamp_retake(const struct producer *producer)
{
	torsh_stamp_disown(producer);
	return TORSH_CPU_LOADS_IN_ORDER ? torsh_stamp_take(producer) : read_checked();
}

void torsh_stamp_use(_Atomic uint64_t *lift, const struct clock_reference *published, bool is_slow)
{
	lift_word = lift ? lift : &no_lift;
	reference = published ? published : &no_reference;
	atomic_store_explicit(&torsh_stamp_is_slow, is_slow, memory_order_relaxed);
}

uint64_t torsh_stamp_lifted_ticks(const struct producer *producer)
{
	if (TORSH_CPU_LOADS_IN_ORDER &&
	    atomic_load_explicit(&torsh_stamp_owner, memory_order_relaxed) == (uintptr_t)producer)
		return torsh_cpu_ticks() + atomic_load_explicit(lift_word, memory_order_relaxed);
	return torsh_stamp_take(producer);
}

void torsh_stamp_disown(const struct producer *producer)
{
	uint64_t owner = (uintptr_t)producer;

	atomic_compare_exchange_strong(&torsh_stamp_owner, &owner, 0);
}
