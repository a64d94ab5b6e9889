/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/clock_conversion.h"

#include <stdlib.h>
#include <time.h>

#include "tools/base/containers/array.h"

#define GUESS_NS_PER_TICK 0.4
#define ENOUGH_NS 100000u /* a shorter time between two readings is too short for a rate */
#define FIX_NS 500000u /* the first piece's rate is measured over at least that */
#define ONE_MOMENT_TICKS (1u << 18)
#define MEASURED_NS 90000000u /* beyond this the rate is accurate for years */
#define LEAST_GAP_NS 1000000000u /* smaller jumps forward are not detected */
#define AGREES_NS 500 /* readings that differ by less from the conversion don't change it */
#define APPROACH_NS 90000000u /* at least so long a piece approaches a reading */
#define APPROACHES 256u /* and at least that part of the time: their number is bounded */

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
	for (int i = 0; i < 10 && !read_both(&rate->first_ticks, &rate->first_ns); i++)
		;
	rate->last_ticks = rate->first_ticks;
	rate->last_ns = rate->first_ns;
	rate->last_suspended_ns = suspended_ns(rate->first_ns);
}

void torsh_clock_rate_destroy(struct clock_rate *rate)
{
	free(rate->gaps);
	free(rate->pieces);
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

/* Sum of the jumps up to that tick. */
static uint64_t jumped_until(const struct clock_rate *rate, uint64_t ticks)
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

static uint64_t piece_ns(const struct clock_piece *piece, uint64_t ticks)
{
	return ticks >= piece->ticks
		       ? piece->ns + (uint64_t)((double)(ticks - piece->ticks) * piece->ns_per_tick)
		       : piece->ns -
				 (uint64_t)((double)(piece->ticks - ticks) * piece->ns_per_tick);
}

uint64_t torsh_clock_rate_ns(const struct clock_rate *rate, uint64_t ticks)
{
	uint32_t low = 0, high = rate->n_pieces;

	if (rate->n_gaps)
		ticks -= jumped_until(rate, ticks);
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (rate->pieces[middle].ticks <= ticks)
			low = middle;
		else
			high = middle;
	}
	return piece_ns(&rate->pieces[low], ticks);
}

static void add_piece(struct clock_rate *rate, const struct clock_piece *piece)
{
	rate->pieces = torsh_array_reserve(rate->pieces, rate->n_pieces, &rate->piece_capacity,
					   sizeof(*rate->pieces));
	rate->pieces[rate->n_pieces++] = *piece;
}

/*
 * Let the conversion approach the last reading. Stamps are not younger than that when they are
 * converted, so none is in the new pieces yet.
 */
static void approach(struct clock_rate *rate)
{
	struct clock_piece from = {.ticks =
					   rate->last_ticks - jumped_until(rate, rate->last_ticks)},
			   after = {.ns_per_tick = rate->ns_per_tick};
	uint64_t approach_ns = (rate->last_ns - rate->first_ns) / APPROACHES;
	double differs_ns, ns_per_tick = rate->ns_per_tick;

	if (!rate->n_pieces || from.ticks <= rate->pieces[rate->n_pieces - 1].ticks)
		return;
	from.ns = piece_ns(&rate->pieces[rate->n_pieces - 1], from.ticks);
	differs_ns = (double)(int64_t)(rate->last_ns - from.ns);
	if (differs_ns < AGREES_NS && differs_ns > -AGREES_NS)
		return;
	if (approach_ns < APPROACH_NS)
		approach_ns = APPROACH_NS;
	after.ticks = from.ticks + ticks_of(rate, approach_ns);
	ns_per_tick += differs_ns / (double)(after.ticks - from.ticks);
	if (ns_per_tick < rate->ns_per_tick / 2)
		ns_per_tick = rate->ns_per_tick / 2;
	from.ns_per_tick = ns_per_tick;
	after.ns = piece_ns(&from, after.ticks);
	add_piece(rate, &from);
	add_piece(rate, &after);
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
	approach(rate);
	return reading;
}

void torsh_clock_rate_fix(struct clock_rate *rate)
{
	struct clock_piece first = {.ticks = rate->first_ticks, .ns = rate->first_ns};

	if (rate->n_pieces)
		return;
	while (rate->last_ns - rate->first_ns <= FIX_NS)
		torsh_clock_rate_measure(rate);
	first.ns_per_tick = rate->ns_per_tick;
	add_piece(rate, &first);
}

void torsh_clock_rate_publish(const struct clock_rate *rate, uint64_t base,
			      struct clock_reference *reference)
{
	if (rate->is_measured)
		torsh_clock_publish(reference, rate->last_ticks - base, rate->last_ns,
				    (uint64_t)((double)CLOCK_NS_A_SECOND / rate->ns_per_tick));
}
