/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/rank_cpu.h"

/* Returns the first point at that moment or later, or their number. */
static size_t point_from(const struct recorded_sums *sums, uint64_t at_ns)
{
	size_t low = 0, high = sums->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sums->points[middle].at_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns a sum until that moment. */
static uint64_t until(const struct recorded_sums *sums, size_t which, uint64_t at_ns)
{
	size_t i = point_from(sums, at_ns);
	const struct recorded_sum_point *after = &sums->points[i], *before = after - 1;
	double part;

	if (i == sums->n)
		return before->sums[which];
	if (!i)
		return after->sums[which];
	part = (double)(at_ns - before->at_ns) / (double)(after->at_ns - before->at_ns);
	return before->sums[which] +
	       (uint64_t)(part * (double)(after->sums[which] - before->sums[which]));
}

static uint64_t between(const struct recorded_sums *sums, size_t which, uint64_t from_ns,
			uint64_t to_ns)
{
	if (!sums->n || from_ns >= to_ns)
		return 0;
	return until(sums, which, to_ns) - until(sums, which, from_ns);
}

struct rank_cpu torsh_rank_cpu(const struct recorded_process *process, uint64_t from_ns,
			       uint64_t to_ns)
{
	const struct recorded_sums *time = &process->cpu_time, *supply = &process->cpu_supply;

	return (struct rank_cpu){
		.ran_ns = between(time, CPU_TIME_RAN, from_ns, to_ns),
		.waited_ns = between(time, CPU_TIME_WAITED, from_ns, to_ns),
		.throttled_ns = between(supply, CPU_SUPPLY_THROTTLED, from_ns, to_ns),
		.stolen_ns = between(supply, CPU_SUPPLY_STOLEN, from_ns, to_ns),
		.has_time = time->n && time->is_known[CPU_TIME_RAN],
		.has_throttled = supply->n && supply->is_known[CPU_SUPPLY_THROTTLED],
		.has_stolen = supply->n && supply->is_known[CPU_SUPPLY_STOLEN],
	};
}
