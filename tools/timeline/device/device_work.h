/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The device time of each launch of one process. A first pass sums it up; a second pass has it when
 * it reaches the launch, before the kernels are reported.
 */
#ifndef TORSH_TIMELINE_DEVICE_DEVICE_WORK_H
#define TORSH_TIMELINE_DEVICE_DEVICE_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/base/containers/key_index.h"
#include "tools/timeline/device/graph_nodes.h"

#define CAUSED_MAX ((UINT32_C(1) << 31) - 1)

/* What one launch is the cause of. */
struct device_caused {
	uint64_t ns;
	uint32_t n : 31; /* kernels, copies and memsets: those of a graph are several */
	uint32_t is_launched : 1; /* the call that has this number was seen, before or after */
	uint32_t n_untimed; /* without times */
};

struct device_page;

/* Five bytes for a launch of one short kernel, 20 more for any other. */
struct device_work {
	struct graph_nodes captured; /* in an operator: 1; their ns are none of the launch's */
	struct key_index index; /* by correlation: index of pages */
	struct device_page *pages;
	size_t n, n_room;
	struct device_caused *whole; /* those that 32 bits don't hold */
	size_t n_whole, n_whole_room;
	uint64_t n_spans, n_launches;
	bool is_seen; /* devices were recorded, or would have been */
	bool is_reported; /* it was reported how they are, or why not */
};

/* Begin without launches; torsh_device_work_destroy frees them. */
void torsh_device_work_create(struct device_work *work);

/* Free the table. */
void torsh_device_work_destroy(struct device_work *work);

/* Take whatever event of the process there is, reported inside of an operator or not. */
void torsh_device_work_add(struct device_work *work, const struct event *event,
			   bool is_in_operator);

/* Returns what the launch with this number caused; zeros: unknown. */
struct device_caused torsh_device_work_by(const struct device_work *work, uint32_t correlation);

/* Returns its nanoseconds. */
uint64_t torsh_device_work_of(const struct device_work *work, uint32_t correlation);

/* Returns the accelerator's own time for the operator that was marked with this number. */
uint64_t torsh_device_work_marked(const struct device_work *work, uint32_t number);

#endif
