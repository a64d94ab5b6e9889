/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Relates CUPTI's clock to CLOCK_MONOTONIC. Both are read now and then, one between two readings of
 * the other; a time in between is interpolated between the readings around it. CUPTI counts
 * nanoseconds of the wall clock, which is sometimes set or adjusted: readings must be frequent
 * while there is something to record. Another client may register its own clock, with other units:
 * then a new era begins.
 */
#include "collectors/cuda/cupti/cuda_clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "collectors/cuda/cuda_lock.h"
#include "collectors/cuda/cuda_ticks.h"
#include "shim/cuda/cupti.h"

#define N_READINGS 256u
#define READ_EVERY_NS 10000000u
#define N_TRIES 5
#define N_ERAS 4u
/* readings closer than this give no rate of a clock in other units */
#define RATE_NS 1000000u
/* a time further beyond the readings is not on this clock */
#define MARGIN_NS UINT64_C(3600000000000)

struct reading {
	uint64_t stamp; /* CUPTI's */
	uint64_t monotonic_ns;
};

/*
 * The time during which CUPTI has one clock: its own, in nanoseconds, or one that a client
 * registered.
 */
struct era {
	bool is_own;
	cupti_clock *clock; /* what the client registered */
	struct reading first; /* for the rate of a clock in other units */
	struct reading readings[N_READINGS];
	uint32_t n_readings; /* total; the last N_READINGS are kept */
	uint32_t last_later; /* the reading after the last time that was converted */
	bool is_set_back; /* its readings are not in order */
};

static struct cuda_lock lock; /* guards what follows */
static struct era eras[N_ERAS] = {{.is_own = 1}};
static uint32_t n_eras = 1; /* total; the last one is current */
/* Odd while a clock is registered: a reading during which it changes is of either clock. */
static _Atomic uint32_t n_changes;
static _Atomic uint64_t widest_ns, largest_step_ns; /* read without it */

static _Atomic uint64_t next_reading_ns;

static struct era *era_at(uint32_t i)
{
	return &eras[i % N_ERAS];
}

static const struct reading *reading_at(const struct era *era, uint32_t i)
{
	return &era->readings[i % N_READINGS];
}

static uint32_t first_kept(const struct era *era)
{
	return era->n_readings > N_READINGS ? era->n_readings - N_READINGS : 0;
}

/* The offset of CUPTI's clock to CLOCK_MONOTONIC, modulo 2^64. */
static uint64_t distance(const struct reading *reading)
{
	return reading->stamp - reading->monotonic_ns;
}

static void measure_step(const struct reading *a, const struct reading *b)
{
	int64_t step = (int64_t)(distance(b) - distance(a));
	uint64_t size = (uint64_t)(step < 0 ? -step : step);

	largest_step_ns = size > largest_step_ns ? size : largest_step_ns;
}

/*
 * A reading with the width of its bracket: of the client's clock, or of CUPTI's if that is NULL,
 * where the width is UINT64_MAX if CUPTI gives none.
 */
static struct reading read_both(cupti_clock *clock, uint64_t *width_ns)
{
	struct reading best = {0};

	*width_ns = UINT64_MAX;
	for (int i = 0; i < N_TRIES; i++) {
		uint64_t before = torsh_cuda_monotonic_ns(), stamp, took;

		if (clock)
			stamp = clock();
		else if (torsh_cupti.GetTimestamp(&stamp))
			break;
		took = torsh_cuda_monotonic_ns() - before;
		if (took >= *width_ns)
			continue;
		*width_ns = took;
		best = (struct reading){.stamp = stamp, .monotonic_ns = before + took / 2};
	}
	return best;
}

/* With the lock. */
static void keep(struct era *era, const struct reading *reading, uint64_t width_ns)
{
	if (era->n_readings && era->is_own)
		measure_step(reading_at(era, era->n_readings - 1), reading);
	if (!era->n_readings)
		era->first = *reading;
	else if (reading->stamp < reading_at(era, era->n_readings - 1)->stamp)
		era->is_set_back = true;
	widest_ns = width_ns > widest_ns ? width_ns : widest_ns;
	era->readings[era->n_readings++ % N_READINGS] = *reading;
}

void torsh_cuda_clock_read(int now)
{
	uint64_t at_ns = torsh_cuda_monotonic_ns();
	uint64_t due_ns = atomic_load_explicit(&next_reading_ns, memory_order_relaxed), width_ns;
	struct reading reading;
	uint32_t change;

	if (!now && at_ns < due_ns)
		return;
	/* One thread does it. */
	if (!atomic_compare_exchange_strong(&next_reading_ns, &due_ns, at_ns + READ_EVERY_NS) &&
	    !now)
		return;
	change = n_changes;
	reading = read_both(NULL, &width_ns);
	if (width_ns == UINT64_MAX)
		return;
	torsh_cuda_lock(&lock);
	if (n_changes == change && !(change & 1))
		keep(era_at(n_eras - 1), &reading, width_ns);
	torsh_cuda_unlock(&lock);
	torsh_cuda_ticks_anchor();
}

uint64_t torsh_cuda_clock_now(void)
{
	uint64_t now_ns = torsh_cuda_now_ns();

	if (now_ns < atomic_load_explicit(&next_reading_ns, memory_order_relaxed))
		return now_ns;
	torsh_cuda_clock_read(0);
	return torsh_cuda_now_ns();
}

void torsh_cuda_clock_change(cupti_clock *clock)
{
	struct reading reading;
	uint64_t width_ns;

	torsh_cuda_clock_read(1);
	n_changes++;
	if (!torsh_cupti.ActivityRegisterTimestampCallback(clock)) {
		reading = read_both(clock, &width_ns);
		torsh_cuda_lock(&lock);
		*era_at(n_eras) = (struct era){.clock = clock};
		keep(era_at(n_eras++), &reading, width_ns);
		torsh_cuda_unlock(&lock);
	}
	n_changes++;
}

static bool is_between(const struct era *era, uint32_t later, uint64_t stamp)
{
	uint32_t first = first_kept(era);

	return later >= first && later <= era->n_readings &&
	       (later == first || reading_at(era, later - 1)->stamp <= stamp) &&
	       (later == era->n_readings || reading_at(era, later)->stamp > stamp);
}

/*
 * The number of the first kept reading that is later than the stamp, or n_readings. Records come in
 * order, thousands between two readings: most have the one of the record before.
 */
static uint32_t find_later(struct era *era, uint64_t stamp)
{
	uint32_t from = first_kept(era), to = era->n_readings;

	if (!era->is_set_back && is_between(era, era->last_later, stamp))
		return era->last_later;
	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (reading_at(era, middle)->stamp > stamp)
			to = middle;
		else
			from = middle + 1;
	}
	era->last_later = from;
	return from;
}

/* Nanoseconds in one of CUPTI's units. */
static double rate_of(const struct era *era)
{
	const struct reading *last = reading_at(era, era->n_readings - 1);

	if (era->is_own || last->stamp <= era->first.stamp)
		return 1;
	return (double)(last->monotonic_ns - era->first.monotonic_ns) /
	       (double)(last->stamp - era->first.stamp);
}

static uint64_t between(const struct reading *a, const struct reading *b, uint64_t stamp)
{
	double share = (double)(stamp - a->stamp) / (double)(b->stamp - a->stamp);

	return a->monotonic_ns + (uint64_t)(share * (double)(b->monotonic_ns - a->monotonic_ns));
}

/* Extrapolated from a reading, before or after it, at the rate of the era. */
static uint64_t beyond(const struct era *era, const struct reading *reading, uint64_t stamp)
{
	int64_t units = (int64_t)(stamp - reading->stamp);

	return reading->monotonic_ns +
	       (uint64_t)(era->is_own ? units : (int64_t)((double)units * rate_of(era)));
}

/* Returns 0 if the stamp is not on this era's clock. */
static uint64_t moment_in(struct era *era, uint64_t stamp)
{
	uint32_t later = find_later(era, stamp), first = first_kept(era);
	uint64_t moment;

	if (!era->n_readings)
		return 0;
	if (later != first && later != era->n_readings)
		return between(reading_at(era, later - 1), reading_at(era, later), stamp);
	moment = beyond(era, reading_at(era, later == first ? first : later - 1), stamp);
	if (moment + MARGIN_NS < reading_at(era, first)->monotonic_ns ||
	    moment > reading_at(era, era->n_readings - 1)->monotonic_ns + MARGIN_NS)
		return 0;
	return moment;
}

/* The latest era with a clock that can have this stamp, or NULL; with the lock. */
static struct era *find_era(uint64_t stamp, uint64_t *moment)
{
	for (uint32_t i = n_eras; i && i + N_ERAS > n_eras; i--) {
		*moment = moment_in(era_at(i - 1), stamp);
		if (*moment)
			return era_at(i - 1);
	}
	*moment = 0;
	return NULL;
}

/* With the lock, as all that follows. */
static bool has_rate(const struct era *era)
{
	return era->is_own ||
	       reading_at(era, era->n_readings - 1)->monotonic_ns - era->first.monotonic_ns >=
		       RATE_NS;
}

/*
 * Wait until a clock in other units has a rate, once for each. CUPTI may hold its locks: the
 * client's function is called directly, as CUPTI does there, too.
 */
static void wait_for_rate(struct era *era)
{
	struct reading reading;
	uint64_t width_ns;

	do
		reading = read_both(era->clock, &width_ns);
	while (reading.monotonic_ns - era->first.monotonic_ns < RATE_NS);
	keep(era, &reading, width_ns);
}

int torsh_cuda_clock_span(uint64_t start, uint64_t end, uint64_t *begin_ns, uint64_t *duration_ns)
{
	struct era *era;
	double rate;

	torsh_cuda_lock(&lock);
	era = find_era(start, begin_ns);
	if (era && !has_rate(era)) {
		wait_for_rate(era);
		era = find_era(start, begin_ns);
	}
	rate = era && !era->is_own ? rate_of(era) : 1;
	torsh_cuda_unlock(&lock);
	*duration_ns = rate == 1 ? end - start : (uint64_t)((double)(end - start) * rate + 0.5);
	return era != NULL;
}

void torsh_cuda_clock_errors(uint64_t *width_ns, uint64_t *step_ns)
{
	*width_ns = atomic_load_explicit(&widest_ns, memory_order_relaxed);
	*step_ns = atomic_load_explicit(&largest_step_ns, memory_order_relaxed);
}
