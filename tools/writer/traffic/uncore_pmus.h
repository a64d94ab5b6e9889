/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which events of the kernel count what the machine's memory controllers move, by what it shows of
 * its event sources in /sys/bus/event_source/devices.
 */
#ifndef TORSH_WRITER_TRAFFIC_UNCORE_PMUS_H
#define TORSH_WRITER_TRAFFIC_UNCORE_PMUS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/store/recording_format.h"

#define UNCORE_NAME_BYTES 64u
#define UNCORE_COUNTERS_MAX 1024u /* 8 sockets with 16 channels, 2 to 4 events each, and more */
#define UNCORE_CONFIGS 3u /* config, config1 and config2 of perf_event_attr */

/* What perf_event_open takes, and what a count of it means. */
struct uncore_event {
	uint32_t type; /* the source's number */
	uint32_t cpu; /* on which the source wants to be asked */
	uint64_t config[UNCORE_CONFIGS];
	double bytes; /* of a count */
	bool is_write;
};

struct uncore_pmus {
	char name[UNCORE_NAME_BYTES]; /* of the sources without their numbers; "": there are none */
	enum memory_traffic_problem
		problem; /* why there are no events; TRAFFIC_COUNTED: there are */
	uint32_t n_sources;
	struct uncore_event *events;
	uint32_t n_events;
};

/*
 * Find them. root is the folder that contains /sys: "" outside tests. All controllers are found, or
 * none: a part of the machine's traffic would be mistaken for the whole.
 */
void torsh_uncore_pmus_find(struct uncore_pmus *pmus, const char *root);

/* Free the events. */
void torsh_uncore_pmus_free(struct uncore_pmus *pmus);

#endif
