/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CLOCK_MONOTONIC from the processor's counter, for the times of every launch: a call of the kernel
 * takes some 20 to 40 ns, and several times that on a virtual machine. Each reading of both clocks
 * sets an anchor; times are extrapolated from it, for a tenth of a second at most, at the rate
 * measured over the last second or two.
 *
 * The counter may be set back, or jump ahead, while the machine is suspended or migrated. An anchor
 * that disagrees with the rate starts over: earlier anchors are useless for the rate. Until there
 * is a rate the kernel's clock is used.
 */
#include "collectors/cuda/cuda_ticks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "agent/producer/producer.h"
#include "agent/wire/clock.h"
#include "collectors/cuda/cuda_lock.h"

#define RATE_BITS 32 /* fraction bits of nanoseconds per tick */
#define BASE_NS_MIN UINT64_C(5000000) /* closer readings give no rate */
#define BASE_NS_MAX UINT64_C(1000000000) /* after that a new base begins */
#define REACH_NS UINT64_C(100000000)
#define N_TRIES 3

struct moment {
	uint64_t ticks, ns;
};

/* One thread writes at a time. n_writes is odd meanwhile: readers then use the kernel's clock. */
static struct anchor {
	_Atomic uint32_t n_writes;
	_Atomic uint64_t ticks, ns, rate, reach_ticks;
} anchor;

static struct cuda_lock lock; /* guards what follows, and writing */
static struct moment base, next_base, last;
static uint64_t rate; /* of the last anchor; 0: there is none */

uint64_t torsh_cuda_now_ns(void)
{
	/* Acquire pairs with the release at the end of publish. */
	uint32_t n_writes = atomic_load_explicit(&anchor.n_writes, memory_order_acquire);
	uint64_t ticks =
		torsh_cpu_ticks() - atomic_load_explicit(&anchor.ticks, memory_order_relaxed);
	uint64_t ns =
		atomic_load_explicit(&anchor.ns, memory_order_relaxed) +
		(ticks * atomic_load_explicit(&anchor.rate, memory_order_relaxed) >> RATE_BITS);
	uint64_t reach = atomic_load_explicit(&anchor.reach_ticks, memory_order_relaxed);

	atomic_thread_fence(memory_order_acquire);
	/* Ticks before the anchor wrap to huge numbers. */
	if (ticks >= reach || n_writes & 1 ||
	    atomic_load_explicit(&anchor.n_writes, memory_order_relaxed) != n_writes)
		return torsh_cuda_monotonic_ns();
	return ns;
}

/* rate 0: times can't be extrapolated from here. */
static void publish(const struct moment *now)
{
	uint32_t n_writes = atomic_load_explicit(&anchor.n_writes, memory_order_relaxed);

	atomic_store_explicit(&anchor.n_writes, n_writes + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&anchor.ticks, now->ticks, memory_order_relaxed);
	atomic_store_explicit(&anchor.ns, now->ns, memory_order_relaxed);
	atomic_store_explicit(&anchor.rate, rate, memory_order_relaxed);
	atomic_store_explicit(&anchor.reach_ticks, rate ? (REACH_NS << RATE_BITS) / rate : 0,
			      memory_order_relaxed);
	/* Pairs with the acquire in torsh_cuda_now_ns. */
	atomic_store_explicit(&anchor.n_writes, n_writes + 2, memory_order_release);
}

/*
 * Read both clocks, taking the fastest of several tries: the thread may be preempted in any of
 * them.
 */
static struct moment read_moment(void)
{
	struct moment best = {0};
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < N_TRIES; i++) {
		uint64_t before_ns = torsh_cuda_monotonic_ns(), ticks = torsh_cpu_ticks();
		uint64_t took_ns = torsh_cuda_monotonic_ns() - before_ns;

		if (took_ns >= best_ns)
			continue;
		best_ns = took_ns;
		best = (struct moment){.ticks = ticks, .ns = before_ns + took_ns / 2};
	}
	return best;
}

/*
 * Whether the counter differs from the value expected by the rate, by more than the rate's error.
 */
static bool is_elsewhere(const struct moment *now)
{
	uint64_t ticks = now->ticks - last.ticks, ns = now->ns - last.ns;
	uint64_t doubt_ns = ns / CLOCK_SHARE + CLOCK_NS_A_SECOND / CLOCK_PART;
	unsigned __int128 counted_ns = (unsigned __int128)ticks * rate >> RATE_BITS;

	if ((int64_t)ticks < 0)
		return true;
	return rate && (counted_ns > ns + doubt_ns || counted_ns + doubt_ns < ns);
}

/* The rate since the base; 0: it is too near, or the counter has jumped. */
static uint64_t measure_rate(const struct moment *now)
{
	uint64_t ticks = now->ticks - base.ticks, ns = now->ns - base.ns;

	/* A long pause makes the base old; restarting it avoids an overflow. */
	while (ns >> RATE_BITS) {
		ns >>= 1;
		ticks >>= 1;
	}
	return ns > BASE_NS_MIN && ticks ? (ns << RATE_BITS) / ticks : 0;
}

void torsh_cuda_ticks_anchor(void)
{
	struct moment now;
	uint64_t measured;

	/* The agent found the counter unreliable. */
	if (torsh_producer_clock_is_monotonic)
		return;
	torsh_cuda_lock(&lock);
	now = read_moment();
	if (!base.ns || is_elsewhere(&now)) {
		base = next_base = now;
		rate = 0;
		publish(&now);
	}
	if (now.ns - next_base.ns > BASE_NS_MAX) {
		base = next_base;
		next_base = now;
	}
	measured = measure_rate(&now);
	if (measured) {
		rate = measured;
		publish(&now);
	}
	last = now;
	torsh_cuda_unlock(&lock);
}
