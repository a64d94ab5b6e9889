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
	struct reading first; /* for the rate of a clock in other units */
	struct reading readings[N_READINGS];
	uint32_t n_readings; /* total; the last N_READINGS are kept */
	uint32_t last_later; /* the reading after the last time that was converted */
	bool is_set_back; /* its readings are not in order */
};

static struct cuda_lock lock; /* guards what follows */
static struct era eras[N_ERAS] = {{.is_own = 1}};
static uint32_t n_eras = 1; /* total; the last one is current */
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

static void keep(const struct reading *reading, uint64_t width_ns)
{
	struct era *era;

	torsh_cuda_lock(&lock);
	era = era_at(n_eras - 1);
	if (era->n_readings && era->is_own)
		measure_step(reading_at(era, era->n_readings - 1), reading);
	if (!era->n_readings)
		era->first = *reading;
	else if (reading->stamp < reading_at(era, era->n_readings - 1)->stamp)
		era->is_set_back = true;
	widest_ns = width_ns > widest_ns ? width_ns : widest_ns;
	era->readings[era->n_readings++ % N_READINGS] = *reading;
	torsh_cuda_unlock(&lock);
}

void torsh_cuda_clock_read(int now)
{
	uint64_t at_ns = torsh_cuda_monotonic_ns();
	uint64_t due_ns = atomic_load_explicit(&next_reading_ns, memory_order_relaxed),
		 best_ns = UINT64_MAX;
	struct reading best = {0};

	if (!now && at_ns < due_ns)
		return;
	/* One thread does it. */
	if (!atomic_compare_exchange_strong(&next_reading_ns, &due_ns, at_ns + READ_EVERY_NS) &&
	    !now)
		return;
	for (int i = 0; i < N_TRIES; i++) {
		uint64_t before = torsh_cuda_monotonic_ns(), stamp, took;

		if (torsh_cupti.GetTimestamp(&stamp))
			return;
		took = torsh_cuda_monotonic_ns() - before;
		if (took >= best_ns)
			continue;
		best_ns = took;
		best = (struct reading){.stamp = stamp, .monotonic_ns = before + took / 2};
	}
	keep(&best, best_ns);
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
	torsh_cuda_clock_read(1);
	if (torsh_cupti.ActivityRegisterTimestampCallback(clock))
		return;
	torsh_cuda_lock(&lock);
	*era_at(n_eras++) = (struct era){0};
	torsh_cuda_unlock(&lock);
	torsh_cuda_clock_read(1);
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
static const struct era *find_era(uint64_t stamp, uint64_t *moment)
{
	for (uint32_t i = n_eras; i && i + N_ERAS > n_eras; i--) {
		*moment = moment_in(era_at(i - 1), stamp);
		if (*moment)
			return era_at(i - 1);
	}
	*moment = 0;
	return NULL;
}

int torsh_cuda_clock_span(uint64_t start, uint64_t end, uint64_t *begin_ns, uint64_t *duration_ns)
{
	const struct era *era;
	double rate;

	torsh_cuda_lock(&lock);
	era = find_era(start, begin_ns);
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
