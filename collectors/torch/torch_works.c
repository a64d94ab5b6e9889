/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What becomes of each c10d::Work: shim/torch/torch_work.c reports it, and the collective is the
 * one in whose call the work was made.
 */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "agent/producer/key_map.h"
#include "agent/producer/producer.h"
#include "agent/wire/event.h"
#include "collectors/torch/operator_events.h"
#include "collectors/torch/torch_collectives.h"
#include "shim/hooks.h"
#include "shim/sys.h"

#define WORK_SETS 1024u
#define WORK_WAYS 8u
#define FUTURES 64u

/* A c10d::Work that may not have ended; addresses are reused. */
struct work {
	_Atomic uintptr_t object; /* 0: free */
	_Atomic uint32_t number; /* of its collective; 0: that is not recorded */
	_Atomic uint64_t begin_ns; /* its thread began to communicate; 0: not known */
	_Atomic bool has_ended;
};

/* Of a work that has not ended: afterwards nobody waits for it, and its address may be reused. */
struct future {
	_Atomic uintptr_t address; /* 0: none */
	_Atomic uint32_t number; /* of the collective */
};

/* In pages that are zeroed in a forked child, which has none of its parent's works. */
struct works {
	struct work sets[WORK_SETS][WORK_WAYS];
	struct future futures[FUTURES];
	_Atomic uint32_t n_futures; /* so far; further ones replace the oldest */
};

static void *_Atomic works; /* struct works */
/*
 * The thread communicates for works: it waits for what these need, as a barrier of gloo for those
 * before it. The program doesn't.
 */
static _Thread_local bool is_runner;

static struct works *get_works(void)
{
	return torsh_sys_own_once(&works, sizeof(struct works));
}

static uint64_t monotonic_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct work *set_of(struct works *all, const void *object)
{
	return all->sets[torsh_key_map_mix((uintptr_t)object, 0) % WORK_SETS];
}

static struct work *find_work(const void *object)
{
	struct works *all = atomic_load_explicit(&works, memory_order_acquire);
	struct work *set = all ? set_of(all, object) : NULL;

	for (uint32_t i = 0; set && i < WORK_WAYS; i++)
		if (atomic_load_explicit(&set[i].object, memory_order_acquire) == (uintptr_t)object)
			return &set[i];
	return NULL;
}

/* The work's place: that of an earlier one at its address, a free one, or the oldest of the set. */
static struct work *place_of(struct works *all, const void *object)
{
	struct work *set = set_of(all, object), *place = find_work(object);

	for (uint32_t i = 0; !place && i < WORK_WAYS; i++)
		if (!atomic_load_explicit(&set[i].object, memory_order_relaxed))
			place = &set[i];
	if (place)
		return place;
	place = &set[0];
	for (uint32_t i = 1; i < WORK_WAYS; i++)
		if (atomic_load_explicit(&set[i].number, memory_order_relaxed) <
		    atomic_load_explicit(&place->number, memory_order_relaxed))
			place = &set[i];
	return place;
}

static void keep_work(const void *object, uint32_t number)
{
	struct works *all = get_works();
	struct work *work;

	if (!all || (!number && !find_work(object)))
		return;
	work = place_of(all, object);
	atomic_store_explicit(&work->begin_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&work->has_ended, false, memory_order_relaxed);
	atomic_store_explicit(&work->number, number, memory_order_relaxed);
	/* Pairs with the acquire in find_work. */
	atomic_store_explicit(&work->object, (uintptr_t)object, memory_order_release);
}

void torsh_torch_work_made(const void *object)
{
	int saved = errno;
	struct producer *producer = torsh_producer_enter();
	const struct torch_collective *collective;

	if (producer) {
		collective = torsh_operators_collective(producer);
		keep_work(object, collective ? collective->number : 0);
		torsh_producer_leave(producer);
	}
	errno = saved;
}

void torsh_torch_work_runs(const void *object)
{
	struct work *work = find_work(object);

	if (!work)
		return;
	is_runner = true;
	atomic_store_explicit(&work->begin_ns, monotonic_ns(), memory_order_relaxed);
}

uint64_t torsh_torch_work_waits(const void *object)
{
	struct work *work = is_runner ? NULL : find_work(object);

	return work && atomic_load_explicit(&work->number, memory_order_relaxed) ? monotonic_ns()
										 : 0;
}

static void send(const struct event *event)
{
	int saved = errno;
	struct producer *producer = torsh_producer_enter();

	if (producer) {
		torsh_producer_event(producer, event, NULL);
		torsh_producer_leave(producer);
	}
	errno = saved;
}

static void send_wait(uint32_t number, uint64_t begin_ns)
{
	send(&(struct event){
		.id = EVENT_COLLECTIVE_WAIT,
		.collective_wait = {.source = COLLECTIVE_BY_C10D,
				    .number = number,
				    .begin = begin_ns,
				    .duration_ns = monotonic_ns() - begin_ns},
	});
}

void torsh_torch_work_waited(const void *object, uint64_t begin_ns, bool is_end)
{
	struct work *work = begin_ns ? find_work(object) : NULL;

	if (!work)
		return;
	send_wait(atomic_load_explicit(&work->number, memory_order_relaxed), begin_ns);
	if (is_end)
		torsh_torch_work_ends(object, false);
}

/* ---- futures, for which C++ waits itself ----------------------------------------------------- */

static void remove_future(struct works *all, uint32_t number)
{
	for (uint32_t i = 0; i < FUTURES; i++)
		if (atomic_load(&all->futures[i].number) == number)
			atomic_store(&all->futures[i].address, 0);
}

bool torsh_torch_work_future(const void *object, const void *future)
{
	struct works *all = atomic_load_explicit(&works, memory_order_acquire);
	struct work *work = find_work(object);
	uint32_t number = work ? atomic_load_explicit(&work->number, memory_order_relaxed) : 0;
	struct future *place;

	if (!number || !future)
		return false;
	remove_future(all, number);
	place = &all->futures[atomic_fetch_add(&all->n_futures, 1) % FUTURES];
	atomic_store(&place->address, 0);
	atomic_store(&place->number, number);
	atomic_store(&place->address, (uintptr_t)future);
	/* Its end on another thread, which sets has_ended first, may have looked for it before. */
	if (atomic_load(&work->has_ended))
		remove_future(all, number);
	return true;
}

uint32_t torsh_torch_future_waits(const void *condition)
{
	struct works *all = atomic_load_explicit(&works, memory_order_acquire);

	if (!all || !atomic_load_explicit(&all->n_futures, memory_order_relaxed))
		return 0;
	for (uint32_t i = 0; i < FUTURES; i++) {
		const struct future *future = &all->futures[i];
		uintptr_t address = atomic_load(&future->address);
		uint32_t number = atomic_load(&future->number);

		/* Unless another work's has taken its place meanwhile. */
		if (address && (uintptr_t)condition - address < TORCH_FUTURE_BYTES &&
		    atomic_load(&future->address) == address)
			return is_runner ? 0 : number;
	}
	return 0;
}

void torsh_torch_future_waited(uint32_t number, uint64_t begin_ns)
{
	send_wait(number, begin_ns);
}

void torsh_torch_work_ends(const void *object, bool has_failed)
{
	struct work *work = find_work(object);
	struct event event = {
		.id = EVENT_COLLECTIVE_END,
		.collective_end = {.source = COLLECTIVE_BY_C10D, .has_failed = has_failed},
	};

	if (!work || !atomic_load_explicit(&work->number, memory_order_relaxed))
		return;
	event.collective_end.number = atomic_load_explicit(&work->number, memory_order_relaxed);
	atomic_store(&work->has_ended, true);
	remove_future(atomic_load_explicit(&works, memory_order_acquire),
		      event.collective_end.number);
	event.collective_end.begin = atomic_load_explicit(&work->begin_ns, memory_order_relaxed);
	event.collective_end.has_begin = event.collective_end.begin != 0;
	send(&event);
}
