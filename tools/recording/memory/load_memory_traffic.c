/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads what memory controllers moved. */
#include "tools/recording/load_parts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

static void load_state(struct recorded_memory_traffic *traffic, const Torsh__MemoryTraffic *row)
{
	free(traffic->source);
	traffic->source = row->source && *row->source ? torsh_need(strdup(row->source)) : NULL;
	traffic->is_known = true;
	traffic->n_sources = row->sources;
	traffic->n_counters = row->counters;
	traffic->problem = row->problem;
	traffic->error = row->error;
	traffic->has_paranoid = row->has_paranoid;
	traffic->paranoid = row->paranoid;
	traffic->counted_share = row->has_counted_share ? row->counted_share : 1;
}

/* Whether neither time nor sums go backwards, from the last reading on. */
static bool is_in_order(const struct recorded_memory_traffic *traffic,
			const Torsh__MemoryTraffic *row)
{
	struct memory_reading last = {0}, next = {0};

	if (traffic->n)
		last = traffic->readings[traffic->n - 1];
	for (size_t i = 0; i < row->n_at_step; i++) {
		if (__builtin_add_overflow(next.at_ns, row->at_step[i], &next.at_ns) ||
		    __builtin_add_overflow(next.read_bytes, row->read_step[i], &next.read_bytes) ||
		    __builtin_add_overflow(next.written_bytes, row->written_step[i],
					   &next.written_bytes) ||
		    next.at_ns < last.at_ns || next.read_bytes < last.read_bytes ||
		    next.written_bytes < last.written_bytes)
			return false;
	}
	return true;
}

void torsh_load_memory_traffic(struct recording *recording, const Torsh__MemoryTraffic *row)
{
	struct recorded_memory_traffic *traffic = &recording->memory_traffic;
	struct memory_reading next = {0};

	if (row->n_read_step != row->n_at_step || row->n_written_step != row->n_at_step ||
	    !(row->counted_share >= 0 && row->counted_share <= 1) || !is_in_order(traffic, row)) {
		recording->n_bad_rows++;
		return;
	}
	load_state(traffic, row);
	for (size_t i = 0; i < row->n_at_step; i++) {
		next.at_ns += row->at_step[i];
		next.read_bytes += row->read_step[i];
		next.written_bytes += row->written_step[i];
		traffic->readings = torsh_array_reserve(traffic->readings, traffic->n,
							&traffic->room, sizeof(next));
		traffic->readings[traffic->n++] = next;
	}
}

void torsh_load_forget_memory_traffic(struct recording *recording)
{
	free(recording->memory_traffic.source);
	free(recording->memory_traffic.readings);
}
