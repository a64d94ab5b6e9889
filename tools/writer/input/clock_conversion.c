/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/clock_conversion.h"

#include <stdlib.h>
#include <time.h>

#include "tools/base/containers/array.h"

#define GUESS_NS_PER_TICK 0.4
#define ENOUGH_NS 100000u /* a shorter time between two readings is too short for a rate */
#define ONE_MOMENT_TICKS (1u << 18)
#define MEASURED_NS 90000000u /* beyond this the rate is accurate for years */
#define LEAST_GAP_NS 1000000000u /* smaller jumps forward are not detected */

uint64_t torsh_clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct reading {
	uint64_t ticks, ns;
	uint64_t took_ticks; /* between the two clock reads: smaller is better */
};

static uint64_t suspended_ns(uint64_t monotonic_ns)
{
	struct timespec now;
	uint64_t ns;

	if (clock_gettime(CLOCK_BOOTTIME, &now))
		return 0;
	ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return ns > monotonic_ns ? ns - monotonic_ns : 0;
}

static struct reading read_once(void)
{
	uint64_t before = torsh_clock_ticks(), ns = torsh_clock_monotonic_ns();
	uint64_t took = torsh_clock_ticks() - before;

	return (struct reading){.ticks = before + took / 2, .ns = ns, .took_ticks = took};
}

/*
 * Read both clocks at one moment: the tightest of a few tries. Returns false if the thread was
 * interrupted in each of them.
 */
static bool read_both(uint64_t *ticks, uint64_t *ns)
{
	struct reading best = read_once();

	for (int i = 1; i < 5; i++) {
		struct reading next = read_once();

		if (next.took_ticks < best.took_ticks)
			best = next;
	}
	*ticks = best.ticks;
	*ns = best.ns;
	return best.took_ticks < ONE_MOMENT_TICKS;
}

void torsh_clock_rate_start(struct clock_rate *rate)
{
	*rate = (struct clock_rate){.ns_per_tick = GUESS_NS_PER_TICK};
	read_both(&rate->first_ticks, &rate->first_ns);
	rate->last_ticks = rate->first_ticks;
	rate->last_ns = rate->first_ns;
	rate->last_suspended_ns = suspended_ns(rate->first_ns);
}

void torsh_clock_rate_destroy(struct clock_rate *rate)
{
	free(rate->gaps);
	*rate = (struct clock_rate){0};
}

static uint64_t ticks_of(const struct clock_rate *rate, uint64_t ns)
{
	return (uint64_t)((double)ns / rate->ns_per_tick);
}

static void add_gap(struct clock_rate *rate, uint64_t from, uint64_t n)
{
	uint64_t former = rate->n_gaps ? rate->gaps[rate->n_gaps - 1].n : 0;

	rate->gaps = torsh_array_reserve(rate->gaps, rate->n_gaps, &rate->gap_capacity,
					 sizeof(*rate->gaps));
	rate->gaps[rate->n_gaps++] = (struct clock_gap){.from = from, .n = former + n};
}

uint64_t torsh_clock_jumped_until(const struct clock_rate *rate, uint64_t ticks)
{
	uint32_t n_before = 0, n_behind = rate->n_gaps;

	while (n_before < n_behind) {
		uint32_t middle = n_before + (n_behind - n_before) / 2;

		if (rate->gaps[middle].from <= ticks)
			n_before = middle + 1;
		else
			n_behind = middle;
	}
	return n_before ? rate->gaps[n_before - 1].n : 0;
}

/*
 * Follow the counter if it differs from the expected value by more than a measurement error.
 * Returns what happened.
 */
static enum clock_jump follow(struct clock_rate *rate, uint64_t *ticks, uint64_t ns)
{
	uint64_t passed_ns = ns - rate->last_ns,
		 expected = rate->last_ticks + ticks_of(rate, passed_ns);
	int64_t beyond = (int64_t)(*ticks - expected);

	if (beyond <
	    -(int64_t)ticks_of(rate, passed_ns / CLOCK_SHARE + CLOCK_NS_A_SECOND / CLOCK_PART)) {
		rate->lift += expected - *ticks;
		*ticks = expected;
		return CLOCK_JUMP_BACK;
	}
	if (beyond < (int64_t)ticks_of(rate, passed_ns + LEAST_GAP_NS))
		return CLOCK_JUMP_NONE;
	/*
	 * Stamps from before the jump are below the expected value, and stamps after it are above.
	 */
	add_gap(rate, expected, (uint64_t)beyond);
	rate->first_ticks += (uint64_t)beyond;
	return CLOCK_JUMP_AHEAD;
}

struct clock_measurement torsh_clock_rate_measure(struct clock_rate *rate)
{
	struct clock_measurement reading = {.jump = CLOCK_JUMP_NONE};
	uint64_t ticks, ns, suspended;

	if (!read_both(&ticks, &ns))
		return reading;
	ticks += rate->lift;
	if (rate->is_measured)
		reading.jump = follow(rate, &ticks, ns);
	if (ns - rate->first_ns > ENOUGH_NS && ticks > rate->first_ticks)
		rate->ns_per_tick =
			(double)(ns - rate->first_ns) / (double)(ticks - rate->first_ticks);
	rate->is_measured = rate->is_measured || ns - rate->first_ns > MEASURED_NS;
	suspended = suspended_ns(ns);
	if (suspended > rate->last_suspended_ns)
		reading.suspended_ns = suspended - rate->last_suspended_ns;
	rate->last_ticks = ticks;
	rate->last_ns = ns;
	rate->last_suspended_ns = suspended;
	return reading;
}

void torsh_clock_rate_publish(const struct clock_rate *rate, uint64_t base,
			      struct clock_reference *reference)
{
	if (rate->is_measured)
		torsh_clock_publish(reference, rate->last_ticks - base, rate->last_ns,
				    (uint64_t)((double)CLOCK_NS_A_SECOND / rate->ns_per_tick));
}
