/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the machine's memory controllers moved over time: a part of recording.h. */
#ifndef TORSH_RECORDING_MEMORY_RECORDED_MEMORY_TRAFFIC_H
#define TORSH_RECORDING_MEMORY_RECORDED_MEMORY_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in MemoryTraffic; what changes is as of the last row. */
struct recorded_memory_traffic {
	bool is_known; /* the recording has a row */
	char *source; /* NULL: none */
	uint32_t n_sources, n_counters;
	uint32_t problem; /* enum memory_traffic_problem */
	uint32_t error;
	bool has_paranoid;
	int32_t paranoid;
	double counted_share;
	/* Readings, by time; sums are of all bytes since the first one. */
	struct memory_reading {
		uint64_t at_ns, read_bytes, written_bytes;
	} * readings;
	size_t n, room;
};

#endif
