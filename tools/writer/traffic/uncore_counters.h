/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counters of memory controllers: opened once for each event and CPU, of the whole machine, and
 * read as two sums of bytes. Where they take turns, what one counted is extrapolated to the time
 * for which it was enabled.
 */
#ifndef TORSH_WRITER_TRAFFIC_UNCORE_COUNTERS_H
#define TORSH_WRITER_TRAFFIC_UNCORE_COUNTERS_H

#include <stddef.h>
#include <sys/types.h>

#include "tools/writer/traffic/uncore_pmus.h"

struct perf_event_attr;

/* The kernel's part: tests have another one. */
struct uncore_calls {
	/* Count on a CPU, whoever runs there. Returns a descriptor or -errno. */
	int (*open)(const struct perf_event_attr *attributes, uint32_t cpu);
	ssize_t (*read)(int fd, void *at, size_t n);
	int (*close)(int fd);
};

extern const struct uncore_calls torsh_uncore_calls;

/* What a counter returns: PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING. */
struct uncore_reading {
	uint64_t value, enabled_ns, running_ns;
};

struct uncore_counters {
	const struct uncore_calls *calls;
	struct uncore_counter {
		int fd;
		bool is_write, is_counted; /* is_counted: since the last sums */
		double bytes; /* of a count */
		struct uncore_reading first, last; /* last: when it last had counted */
	} * items;
	uint32_t n;
	bool is_begun; /* all have a first reading */
	double sums[2]; /* bytes read and written since then */
};

/* Open them. Returns 0 or -errno, and then none is open. */
int torsh_uncore_open(struct uncore_counters *counters, const struct uncore_pmus *pmus,
		      const struct uncore_calls *calls);

/*
 * Read all. Returns 1 with the bytes since the first call in sums[0], read, and sums[1], written; 0
 * if some counter has not counted since the last sums: then these are not complete; or -errno if
 * one can't be read or went backwards: from then on nothing is known.
 */
int torsh_uncore_read(struct uncore_counters *counters, uint64_t sums[2]);

/* Returns the part of the time that the counter with the least has counted; 1 before two reads. */
double torsh_uncore_share(const struct uncore_counters *counters);

/* Close them. */
void torsh_uncore_close(struct uncore_counters *counters);

#endif
