/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Device activities: kernels, copies and memsets in one form. */
#ifndef TORSH_TIMELINE_DEVICE_DEVICE_ACTIVITY_H
#define TORSH_TIMELINE_DEVICE_DEVICE_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "agent/wire/event.h"

enum device_what { DEVICE_KERNEL, DEVICE_COPY, DEVICE_MEMSET, DEVICE_GRAPH, N_DEVICE_WHATS };

extern const char *const torsh_device_what_names[N_DEVICE_WHATS];

/* One activity. */
struct activity_record {
	enum device_what what;
	uint32_t name; /* label of a kernel's */
	uint32_t kind; /* enum copy_kind of a copy */
	uint64_t bytes; /* of copies and memsets */
	bool is_timed; /* else begin_ns and end_ns are not the device's */
	uint64_t begin_ns, duration_ns;
	uint32_t correlation; /* 0: the launch is unknown */
	uint32_t device, context, stream, graph;
	uint64_t node;
};

/* Returns true and fills *span if the event is one of these. */
bool torsh_activity_record(const struct event *event, struct activity_record *record);

/* Returns true and fills *span if the event reports an activity without its times. */
bool torsh_activity_untimed(const struct event *event, struct activity_record *record);

/* Returns "HtoD" and the like; "?" if unknown. */
const char *torsh_copy_name(uint32_t kind);

/* Returns "Pinned" and the like, for an enum device_memory. */
const char *torsh_memory_name(uint32_t memory);

/* Returns true for a runtime call, false for a driver call, by its name. */
static inline bool torsh_api_is_runtime(const char *name)
{
	return strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0;
}

#define DEVICE_TITLE_BYTES 64

/*
 * Get the title of a copy or a memset in Kineto's traces: "Memcpy HtoD (Pinned -> Device)"; a graph
 * that was measured only as a whole is a "CUDA graph". out holds DEVICE_TITLE_BYTES. Returns false
 * for a kernel, which has its own name.
 */
bool torsh_activity_title(const struct event *event, char *out);

#endif
