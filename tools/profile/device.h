/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What devices did: kernels, copies and memsets in one form, and how much of it each launch is the cause of.
 */
#ifndef TORSH_PROFILE_DEVICE_H
#define TORSH_PROFILE_DEVICE_H

#include "tools/profile/graph_nodes.h"
#include "tools/profile/timeline.h"
#include "tools/writer/key_index.h"

enum device_what { DEVICE_KERNEL, DEVICE_COPY, DEVICE_MEMSET, N_DEVICE_WHATS };

extern const char *const torsh_device_what_names[N_DEVICE_WHATS];

/* One of them. */
struct device_span {
	enum device_what what;
	uint32_t name; /* label of a kernel's */
	uint32_t kind; /* enum copy_kind of a copy */
	uint64_t bytes; /* of copies and memsets */
	uint64_t begin_ns, duration_ns;
	uint32_t correlation; /* 0: of no launch that is known */
	uint32_t device, context, stream, graph;
	uint64_t node;
};

/* Is the event one of these? Then *span is filled. */
bool torsh_device_span(const struct event *event, struct device_span *span);

/* "HtoD" and the like; "?" of one that is not known. */
const char *torsh_copy_name(uint32_t kind);

/* Nanoseconds of devices by launch, of one process; without what belongs to the capture of a graph's node. */
struct device_work {
	struct graph_nodes captured; /* in an operator: 1 */
	struct key_index index; /* by correlation: index of items */
	uint64_t *items;
	size_t n, n_room;
	bool is_seen; /* devices were recorded, or would have been */
};

void torsh_device_work_create(struct device_work *work);
void torsh_device_work_destroy(struct device_work *work);

/* Take whatever event of the process there is, told inside of an operator or not. */
void torsh_device_work_add(struct device_work *work, const struct event *event, bool is_in_operator);

/* What the launch with this number caused; 0: nothing that was seen. */
uint64_t torsh_device_work_of(const struct device_work *work, uint32_t correlation);

#endif
