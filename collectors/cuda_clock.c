/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CUPTI's clock against CLOCK_MONOTONIC. Both are read now and then, one between two readings of the other; a time in
 * between lies on the line through the readings around it. CUPTI counts the nanoseconds of the wall clock, which is
 * set now and then and runs faster or slower meanwhile: readings must be frequent where there is something to record.
 */
#include "collectors/cuda.h"

#include <string.h>
#include <time.h>

#include "shim/cupti.h"

#define N_READINGS 256u
#define READ_EVERY_NS 10000000u
#define N_TRIES 5

struct reading {
	uint64_t stamp; /* CUPTI's */
	uint64_t monotonic_ns;
};

static struct cuda_lock lock; /* guards what follows */
static struct reading readings[N_READINGS];
static uint32_t n_readings; /* ever made; the last N_READINGS are kept */
static uint64_t widest_ns, largest_step_ns;

static _Atomic uint64_t next_reading_ns;

uint64_t torsh_cuda_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const struct reading *reading_at(uint32_t i)
{
	return &readings[i % N_READINGS];
}

static uint32_t first_kept(void)
{
	return n_readings > N_READINGS ? n_readings - N_READINGS : 0;
}

/* How far CUPTI's clock is ahead of ours, modulo 2^64. */
static uint64_t distance(const struct reading *reading)
{
	return reading->stamp - reading->monotonic_ns;
}

static void keep(const struct reading *reading, uint64_t width_ns)
{
	torsh_cuda_lock(&lock);
	if (n_readings) {
		int64_t step = (int64_t)(distance(reading) - distance(reading_at(n_readings - 1)));
		uint64_t size = (uint64_t)(step < 0 ? -step : step);

		largest_step_ns = size > largest_step_ns ? size : largest_step_ns;
	}
	widest_ns = width_ns > widest_ns ? width_ns : widest_ns;
	readings[n_readings++ % N_READINGS] = *reading;
	torsh_cuda_unlock(&lock);
}

void torsh_cuda_clock_read(int now)
{
	uint64_t at_ns = torsh_cuda_monotonic_ns();
	uint64_t due_ns = atomic_load_explicit(&next_reading_ns, memory_order_relaxed), best_ns = UINT64_MAX;
	struct reading best = {0};

	if (!now && at_ns < due_ns)
		return;
	/* One thread does it. */
	if (!atomic_compare_exchange_strong(&next_reading_ns, &due_ns, at_ns + READ_EVERY_NS) && !now)
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
}

/* The number of the first kept reading that is later than the stamp, or n_readings. */
static uint32_t find_later(uint64_t stamp)
{
	uint32_t from = first_kept(), to = n_readings;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (reading_at(middle)->stamp > stamp)
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

static uint64_t between(const struct reading *a, const struct reading *b, uint64_t stamp)
{
	double share = (double)(stamp - a->stamp) / (double)(b->stamp - a->stamp);

	return a->monotonic_ns + (uint64_t)(share * (double)(b->monotonic_ns - a->monotonic_ns));
}

uint64_t torsh_cuda_clock_moment(uint64_t stamp)
{
	uint64_t moment = 0;
	uint32_t later;

	torsh_cuda_lock(&lock);
	later = find_later(stamp);
	if (n_readings) {
		/* Before the first and after the last both clocks run alike. */
		if (later == first_kept())
			moment = stamp - distance(reading_at(later));
		else if (later == n_readings)
			moment = stamp - distance(reading_at(later - 1));
		else
			moment = between(reading_at(later - 1), reading_at(later), stamp);
	}
	torsh_cuda_unlock(&lock);
	return moment;
}

void torsh_cuda_clock_errors(uint64_t *width_ns, uint64_t *step_ns)
{
	torsh_cuda_lock(&lock);
	*width_ns = widest_ns;
	*step_ns = largest_step_ns;
	torsh_cuda_unlock(&lock);
}
