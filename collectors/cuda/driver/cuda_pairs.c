/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Pairs of driver events: spare ones, those with work in progress between them, and the polls that
 * read what each has measured. A poll never waits for the device.
 */
#include "collectors/cuda/driver/cuda_events_parts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "collectors/cuda/cuda.h"
#include "collectors/cuda/cuda_lock.h"
#include "collectors/cuda/cuda_ticks.h"
#include "collectors/cuda/driver/cuda_events.h"
#include "collectors/cuda/driver/cuda_launches.h"
#include "collectors/device/device_cuda.h"
#include "collectors/device/devices.h"
#include "shim/sys.h"

#define PAIRS_A_TIME 128u
#define POLL_EVERY_NS 1000000u
#define POLL_SHARE 15u /* polls may take one part in this + 1 */
#define BLOCKED_MAX 64u

struct list {
	struct device_pair *first, **last;
};

struct cuda_watch *torsh_cuda_watch;

static struct cuda_lock lock; /* guards the spare and the pending pairs */
static struct device_pair *spares;
static struct list pending;

/* With the lock. */
static void make_pairs(void)
{
	struct device_pair *made = torsh_sys_pages(PAIRS_A_TIME * sizeof(*made));

	for (uint32_t i = 0; made && i < PAIRS_A_TIME; i++) {
		made[i].next = spares;
		spares = &made[i];
	}
}

struct device_pair *torsh_cuda_take_pair(void)
{
	struct device_pair *pair;

	torsh_cuda_lock(&lock);
	if (!spares)
		make_pairs();
	pair = spares;
	if (pair)
		spares = pair->next;
	torsh_cuda_unlock(&lock);
	return pair;
}

void torsh_cuda_give_pair(struct device_pair *pair)
{
	torsh_cuda_lock(&lock);
	pair->next = spares;
	spares = pair;
	torsh_cuda_unlock(&lock);
}

void torsh_cuda_add_pending(struct device_pair *pair)
{
	pair->next = NULL;
	torsh_cuda_lock(&lock);
	if (!pending.first)
		pending.last = &pending.first;
	*pending.last = pair;
	pending.last = &pair->next;
	torsh_cuda_unlock(&lock);
	atomic_fetch_add_explicit(&torsh_cuda_watch->n_pending, 1, memory_order_relaxed);
}

/*
 * Streams with a pair that was not reached, so that later ones were not either. Beyond this number
 * each pair is queried.
 */
struct blocked {
	const void *streams[BLOCKED_MAX];
	uint32_t contexts[BLOCKED_MAX], n;
};

static bool is_blocked(const struct blocked *blocked, const struct device_pair *pair)
{
	for (uint32_t i = 0; i < blocked->n; i++)
		if (blocked->streams[i] == pair->work.stream &&
		    blocked->contexts[i] == pair->location.context)
			return true;
	return false;
}

static void block(struct blocked *blocked, const struct device_pair *pair)
{
	if (blocked->n == BLOCKED_MAX)
		return;
	blocked->streams[blocked->n] = pair->work.stream;
	blocked->contexts[blocked->n++] = pair->location.context;
}

/* The times of a pair. Returns 0, -EAGAIN, or -errno: it will never have any. */
static int measure(const struct device_pair *pair, uint64_t *begin_ns, uint64_t *duration_ns)
{
	uint64_t mark_ns, earliest_ns, taken_ns;
	struct quiet quiet = enter_driver();
	double us = 0;
	int result = torsh_device_cuda.elapsed(pair->begin, pair->end, &us);

	if (!result)
		result = torsh_device_cuda_moment(pair->begin, &mark_ns);
	leave_driver(&quiet);
	if (result)
		return result;
	taken_ns = us > 0 ? (uint64_t)(us * 1000 + 0.5) : 0;
	/*
	 * An idle stream reaches its event before it has work: nothing begins before it was
	 * requested.
	 */
	earliest_ns = pair->work.begin_ns - torsh_device_cuda_clock().width_ns / 2;
	*begin_ns = mark_ns < earliest_ns ? earliest_ns : mark_ns;
	if (*begin_ns > mark_ns + taken_ns)
		*begin_ns = mark_ns + taken_ns;
	*duration_ns = mark_ns + taken_ns - *begin_ns;
	return 0;
}

/* Returns 1 if the pair is finished. */
static int settle(struct device_pair *pair, struct blocked *blocked)
{
	uint64_t begin_ns, duration_ns;
	int result;

	if (is_blocked(blocked, pair))
		return 0;
	result = measure(pair, &begin_ns, &duration_ns);
	if (result == -EAGAIN) {
		block(blocked, pair);
		return 0;
	}
	if (result)
		atomic_fetch_add_explicit(&torsh_cuda_losses.invalid, 1, memory_order_relaxed);
	else
		torsh_cuda_send_timed(pair, begin_ns, duration_ns);
	atomic_fetch_add_explicit(&torsh_cuda_watch->n_timed, !result, memory_order_relaxed);
	torsh_cuda_give_pair(pair);
	atomic_fetch_sub_explicit(&torsh_cuda_watch->n_pending, 1, memory_order_relaxed);
	return 1;
}

static struct list take_pending(void)
{
	struct list taken;

	torsh_cuda_lock(&lock);
	taken = pending;
	pending = (struct list){0};
	torsh_cuda_unlock(&lock);
	return taken;
}

/* Before those that were added meanwhile. */
static void put_back(struct device_pair *first, struct device_pair **last)
{
	if (!first)
		return;
	torsh_cuda_lock(&lock);
	*last = pending.first;
	if (!pending.first)
		pending.last = last;
	pending.first = first;
	torsh_cuda_unlock(&lock);
}

void torsh_cuda_poll_all(void)
{
	static struct blocked blocked;
	struct device_pair *left = NULL, **last = &left, *next;

	blocked.n = 0;
	for (struct device_pair *pair = take_pending().first; pair; pair = next) {
		next = pair->next;
		if (settle(pair, &blocked))
			continue;
		*last = pair;
		last = &pair->next;
		pair->next = NULL;
	}
	put_back(left, last);
}

int torsh_cuda_take_poll(void)
{
	/* Pairs with the release in give_poll. */
	return !atomic_exchange_explicit(&torsh_cuda_watch->is_polling, 1, memory_order_acquire);
}

void torsh_cuda_give_poll(void)
{
	atomic_store_explicit(&torsh_cuda_watch->is_polling, 0, memory_order_release);
}

/* With the poll lock, which is released. */
static __attribute__((noinline)) void poll_now(uint64_t now_ns)
{
	uint64_t taken_ns;

	torsh_cuda_poll_all();
	taken_ns = torsh_cuda_monotonic_ns() - now_ns;
	atomic_store_explicit(&torsh_cuda_watch->due_ns,
			      now_ns + POLL_EVERY_NS + POLL_SHARE * taken_ns, memory_order_relaxed);
	torsh_cuda_give_poll();
}

void torsh_cuda_poll_marks(uint64_t now_ns)
{
	if (atomic_load_explicit(&torsh_cuda_watch->n_pending, memory_order_relaxed) &&
	    !atomic_load_explicit(&torsh_cuda_watch->is_ending, memory_order_relaxed) &&
	    now_ns >= atomic_load_explicit(&torsh_cuda_watch->due_ns, memory_order_relaxed) &&
	    torsh_cuda_take_poll())
		poll_now(now_ns);
}
