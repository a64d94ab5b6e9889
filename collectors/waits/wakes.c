/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/waits/wakes.h"

#include <stddef.h>

/*
 * A record in one word, which is read and written as a whole: 22 bits of the thread, as many as the
 * kernel has, 34 of the time in units of 256 ns, an hour, and 8 of the object: who left it may have
 * read the owner before that changed.
 */
#define TIME_BITS 34u
#define TAG_BITS 8u
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)
#define TAG_MASK ((UINT64_C(1) << TAG_BITS) - 1)
#define TID_SHIFT (TIME_BITS + TAG_BITS)
#define UNIT_SHIFT 8u

static uint64_t hash_of(uint64_t object)
{
	return object * UINT64_C(0x9e3779b97f4a7c15);
}

static struct wake_slot *slot_of(struct wake_slot *slots, uint64_t object)
{
	return &slots[hash_of(object) >> 32 & (WAKE_SLOTS - 1)];
}

static uint64_t tag_of(uint64_t object)
{
	return hash_of(object) >> 56;
}

static uint64_t record_of(uint64_t object, uint32_t tid, uint64_t now_ns)
{
	return (uint64_t)tid << TID_SHIFT | (now_ns >> UNIT_SHIFT & TIME_MASK) << TAG_BITS |
	       tag_of(object);
}

static uint64_t age_of(uint64_t record, uint64_t now_ns)
{
	return ((now_ns >> UNIT_SHIFT) - (record >> TAG_BITS)) & TIME_MASK;
}

/* ---- waiters --------------------------------------------------------------------------------- */

uint32_t torsh_wakes_enter(struct wake_slot *slots, uint64_t object)
{
	struct wake_slot *slot = slot_of(slots, object);
	uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed), next;

	if (!object || object >> 48)
		return 0;
	do {
		if (!(owner & WAKE_WAITERS))
			next = object << 16 | WAKE_IN_MAKING | 1;
		else if (owner >> 16 == object && !(owner & WAKE_IN_MAKING) &&
			 (owner & WAKE_WAITERS) < WAKE_WAITERS)
			next = owner + 1;
		else
			return 0;
	} while (!atomic_compare_exchange_weak(&slot->owner, &owner, next));
	if (next & WAKE_IN_MAKING) {
		atomic_store_explicit(&slot->all, 0, memory_order_relaxed);
		atomic_store_explicit(&slot->replaced, 0, memory_order_relaxed);
		for (uint32_t i = 0; i < WAKE_ONES; i++)
			atomic_store_explicit(&slot->ones[i], 0, memory_order_relaxed);
		/* From now on it has records. */
		atomic_store(&slot->owner, object << 16 | 1);
	}
	return (uint32_t)(slot - slots) + 1;
}

void torsh_wakes_leave(struct wake_slot *slots, uint32_t place, uint64_t object)
{
	struct wake_slot *slot = &slots[place - 1];
	uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);

	do {
		/* In a forked child the slots are empty. */
		if (owner >> 16 != object || !(owner & WAKE_WAITERS))
			return;
	} while (!atomic_compare_exchange_weak(&slot->owner, &owner, owner - 1));
}

/* ---- records --------------------------------------------------------------------------------- */

/* A record that another thread's takes the place of. */
static void note_replaced(struct wake_slot *slot, uint64_t record, uint64_t now_ns)
{
	uint64_t noted = atomic_load(&slot->replaced);

	while (!noted || age_of(record, now_ns) < age_of(noted, now_ns)) {
		if (atomic_compare_exchange_weak(&slot->replaced, &noted, record))
			return;
	}
}

/* Noted first: at no moment a waiter finds the old record in neither place. */
static void replace(struct wake_slot *slot, _Atomic uint64_t *place, uint64_t record,
		    uint64_t now_ns)
{
	uint64_t old = atomic_load(place);

	do {
		if (old && old >> TID_SHIFT != record >> TID_SHIFT)
			note_replaced(slot, old, now_ns);
	} while (!atomic_compare_exchange_weak(place, &old, record));
}

/* Returns the place of a record: a free one, or that of the oldest. */
static _Atomic uint64_t *put_one(struct wake_slot *slot, uint64_t record, uint64_t now_ns)
{
	_Atomic uint64_t *oldest = NULL;
	uint64_t oldest_age = 0;

	for (uint32_t i = 0; i < WAKE_ONES; i++) {
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(&slot->ones[i], &found, record))
			return &slot->ones[i];
		if (!oldest || age_of(found, now_ns) > oldest_age) {
			oldest = &slot->ones[i];
			oldest_age = age_of(found, now_ns);
		}
	}
	replace(slot, oldest, record, now_ns);
	return oldest;
}

void torsh_wakes_post(struct wake_slot *slots, uint64_t object, enum wake_whom whom, uint32_t tid,
		      uint64_t now_ns)
{
	struct wake_slot *slot = slot_of(slots, object);
	uint64_t record = record_of(object, tid, now_ns);
	_Atomic uint64_t *place = &slot->all;

	if (whom == WAKE_ONE)
		place = put_one(slot, record, now_ns);
	else if (whom == WAKE_ALL)
		replace(slot, place, record, now_ns);
	else /* Each owner of a lock leaves it before the next one has it. */
		atomic_store_explicit(place, record, memory_order_release);
	/* The last waiter may have left, and one for another object entered. */
	if (atomic_load(&slot->owner) >> 16 != object)
		atomic_compare_exchange_strong(place, &record, 0);
}

/* What the records of a slot are for one wait. */
struct records {
	uint64_t tag, now_ns, longest; /* ages of what lies in the wait */
	uint64_t latest, latest_age; /* of those in the wait */
	_Atomic uint64_t *place; /* of the latest, if it's of one waiter */
	uint32_t n;
	bool are_of_several; /* threads */
};

static bool is_in_wait(const struct records *records, uint64_t record)
{
	return record && (record & TAG_MASK) == records->tag &&
	       age_of(record, records->now_ns) <= records->longest;
}

static void see_record(struct records *records, _Atomic uint64_t *place, bool is_one)
{
	uint64_t record = atomic_load(place);
	uint64_t age = age_of(record, records->now_ns);

	if (!is_in_wait(records, record))
		return;
	records->n++;
	records->are_of_several |=
		records->latest && records->latest >> TID_SHIFT != record >> TID_SHIFT;
	if (records->latest && age >= records->latest_age)
		return;
	records->latest = record;
	records->latest_age = age;
	records->place = is_one ? place : NULL;
}

struct wake torsh_wakes_take(struct wake_slot *slots, uint32_t place, uint64_t object, bool is_lock,
			     uint64_t begin_ns, uint64_t now_ns)
{
	struct wake_slot *slot = &slots[place - 1];
	struct records records = {.tag = tag_of(object),
				  .now_ns = now_ns,
				  .longest = (now_ns >> UNIT_SHIFT) - (begin_ns >> UNIT_SHIFT)};
	uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed), at_ns;
	struct wake none = {0};

	see_record(&records, &slot->all, false);
	for (uint32_t i = 0; !is_lock && i < WAKE_ONES; i++)
		see_record(&records, &slot->ones[i], true);
	/*
	 * What a record was for may have gone to a thread that did not wait, or the waiter wasn't
	 * there yet: of several threads any may have ended the wait.
	 */
	if (!records.latest || owner >> 16 != object || records.longest >= TIME_MASK ||
	    records.are_of_several || is_in_wait(&records, atomic_load(&slot->replaced)))
		return none;
	/* With it goes what it was for; of several of a thread it isn't known which. */
	if (records.place && records.n == 1) {
		uint64_t taken = records.latest;

		if (!atomic_compare_exchange_strong(records.place, &taken, 0))
			return none;
	}
	at_ns = ((now_ns >> UNIT_SHIFT) - records.latest_age) << UNIT_SHIFT;
	return (struct wake){.tid = (uint32_t)(records.latest >> TID_SHIFT),
			     .at_ns = at_ns > begin_ns ? at_ns : begin_ns};
}
