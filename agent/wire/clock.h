/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The minimum value of the time stamp counter, from the writer's last reading: a suspend, or a move
 * to another machine, sets the counter back. The writer publishes, targets compare; both count
 * ticks as if it had never been set back.
 */
#ifndef TORSH_AGENT_WIRE_CLOCK_H
#define TORSH_AGENT_WIRE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

/* Both clocks at one moment, and the rate. */
struct clock_moment {
	uint64_t ticks, monotonic_ns;
	uint64_t ticks_a_second; /* 0: unknown so far */
};

struct shared_clock_moment {
	_Atomic uint64_t ticks, monotonic_ns, ticks_a_second;
};

struct clock_reference {
	/* moments published: the last one is moments[n & 1]; the other is written next */
	_Atomic uint32_t n;
	struct shared_clock_moment moments[2];
};

#define CLOCK_NS_A_SECOND UINT64_C(1000000000)
/* The error bound of the rate: a share of the time since the reference, and a part of a second. */
#define CLOCK_SHARE 1024u
#define CLOCK_PART 1000u

static inline uint64_t torsh_clock_ticks_of(uint64_t ns, uint64_t ticks_a_second)
{
	return (uint64_t)((unsigned __int128)ns * ticks_a_second / CLOCK_NS_A_SECOND);
}

/* Publish a moment; one thread only. */
static inline void torsh_clock_publish(struct clock_reference *reference, uint64_t ticks,
				       uint64_t monotonic_ns, uint64_t ticks_a_second)
{
	uint32_t n = atomic_load_explicit(&reference->n, memory_order_relaxed) + 1;
	struct shared_clock_moment *moment = &reference->moments[n & 1];

	/* After the previous count: a reader of this moment then detects that it is out of date. */
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store_explicit(&moment->ticks, ticks, memory_order_relaxed);
	atomic_store_explicit(&moment->monotonic_ns, monotonic_ns, memory_order_relaxed);
	atomic_store_explicit(&moment->ticks_a_second, ticks_a_second, memory_order_relaxed);
	/* Pairs with the acquire in torsh_clock_read. */
	atomic_store_explicit(&reference->n, n, memory_order_release);
}

/* The last published moment; never waits for the publisher. */
static inline struct clock_moment torsh_clock_read(const struct clock_reference *reference)
{
	uint32_t n = atomic_load_explicit(&reference->n, memory_order_acquire), last;
	struct clock_moment known;

	for (;;) {
		const struct shared_clock_moment *moment = &reference->moments[n & 1];

		known.ticks = atomic_load_explicit(&moment->ticks, memory_order_relaxed);
		known.monotonic_ns =
			atomic_load_explicit(&moment->monotonic_ns, memory_order_relaxed);
		known.ticks_a_second =
			atomic_load_explicit(&moment->ticks_a_second, memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		last = atomic_load_explicit(&reference->n, memory_order_acquire);
		if (last == n)
			return known;
		n = last;
	}
}

/*
 * How many ticks `ticks`, read at this moment, is below its minimum; 0: none, or fewer than the
 * error bound, which is stored in *doubt. `known` comes from an earlier torsh_clock_read.
 */
static inline uint64_t torsh_clock_missing(const struct clock_moment *known, uint64_t ticks,
					   uint64_t monotonic_ns, uint64_t *doubt)
{
	uint64_t passed_ns =
		monotonic_ns > known->monotonic_ns ? monotonic_ns - known->monotonic_ns : 0;
	uint64_t passed = torsh_clock_ticks_of(passed_ns, known->ticks_a_second),
		 expected = known->ticks + passed;

	*doubt = passed / CLOCK_SHARE + known->ticks_a_second / CLOCK_PART;
	return (int64_t)(expected - ticks) > (int64_t)*doubt ? expected - ticks : 0;
}

#endif
