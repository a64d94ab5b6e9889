/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The device time of each launch of one process. A first pass sums it up, so that a second pass
 * has the sum at the launch, before the kernels are reported.
 */
#ifndef TORSH_TIMELINE_DEVICE_DEVICE_WORK_H
#define TORSH_TIMELINE_DEVICE_DEVICE_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/base/containers/key_index.h"
#include "tools/timeline/device/graph_nodes.h"

#define CAUSED_MAX ((UINT32_C(1) << 31) - 1)

/* The activities that one launch caused. */
struct device_caused {
	uint64_t ns;
	uint32_t n : 31; /* kernels, copies and memsets: a graph has several */
	uint32_t is_launched : 1; /* the call with this correlation id was recorded */
	uint32_t n_untimed; /* without times */
};

struct device_page;

/* Five bytes per launch of one short kernel, 20 more for any other. */
struct device_work {
	/* nodes captured in an operator: 1; their time does not count for the launch */
	struct graph_nodes captured;
	struct key_index index; /* by correlation id: index of pages */
	struct device_page *pages;
	size_t n, n_room;
	struct device_caused *whole; /* entries that 32 bits can't hold */
	size_t n_whole, n_whole_room;
	uint64_t n_spans, n_launches;
	bool is_seen; /* devices were recorded, or would have been */
	bool is_reported; /* how devices were recorded, or why not, was reported */
};

/* Begin without launches; torsh_device_work_destroy frees them. */
void torsh_device_work_create(struct device_work *work);

/* Free the table. */
void torsh_device_work_destroy(struct device_work *work);

/* Pass any event of the process, within an operator or not. */
void torsh_device_work_add(struct device_work *work, const struct event *event,
			   bool is_in_operator);

/* Returns what the launch with this correlation id caused; zeros: unknown. */
struct device_caused torsh_device_work_by(const struct device_work *work, uint32_t correlation);

/* Returns the device time of that launch in ns. */
uint64_t torsh_device_work_of(const struct device_work *work, uint32_t correlation);

/* Returns the accelerator's own time for the marked operator with this number. */
uint64_t torsh_device_work_marked(const struct device_work *work, uint32_t number);

#endif
