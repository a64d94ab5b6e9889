/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/counts/memory_traffic.h"

/* Returns the first reading that is not before the time. */
static size_t first_at(const struct recorded_memory_traffic *recorded, uint64_t at_ns)
{
	size_t low = 0, high = recorded->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (recorded->readings[middle].at_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct memory_traffic between(const struct memory_reading *from,
				     const struct memory_reading *to)
{
	return (struct memory_traffic){.ns = to->at_ns - from->at_ns,
				       .read_bytes = to->read_bytes - from->read_bytes,
				       .written_bytes = to->written_bytes - from->written_bytes};
}

struct memory_traffic torsh_memory_traffic_in(const struct recorded_memory_traffic *recorded,
					      uint64_t from_ns, uint64_t to_ns)
{
	size_t first = first_at(recorded, from_ns), end = first_at(recorded, to_ns);
	struct memory_traffic traffic = {0};

	if (end < recorded->n && recorded->readings[end].at_ns == to_ns)
		end++;
	if (end > first + 1)
		traffic = between(&recorded->readings[first], &recorded->readings[end - 1]);
	return traffic.ns >= TRAFFIC_NS_MIN ? traffic : (struct memory_traffic){0};
}

void torsh_memory_traffic_add(struct memory_traffic *traffic, const struct memory_traffic *more)
{
	traffic->ns += more->ns;
	traffic->read_bytes += more->read_bytes;
	traffic->written_bytes += more->written_bytes;
}

double torsh_memory_traffic_highest(const struct recorded_memory_traffic *recorded,
				    uint64_t from_ns, uint64_t to_ns)
{
	double highest = 0;

	for (size_t i = first_at(recorded, from_ns) + 1;
	     i < recorded->n && recorded->readings[i].at_ns <= to_ns; i++) {
		struct memory_traffic one =
			between(&recorded->readings[i - 1], &recorded->readings[i]);
		double rate = one.ns < TRAFFIC_NS_MIN
				      ? 0
				      : ((double)one.read_bytes + (double)one.written_bytes) /
						(double)one.ns;

		highest = rate > highest ? rate : highest;
	}
	return highest;
}
