/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What devices did: kernels, copies and memsets in one form, and how much of it each launch is the cause of.
 */
#ifndef TORSH_PROFILE_DEVICE_H
#define TORSH_PROFILE_DEVICE_H

#include <string.h>

#include "tools/profile/graph_nodes.h"
#include "tools/profile/timeline.h"
#include "tools/writer/key_index.h"

enum device_what { DEVICE_KERNEL, DEVICE_COPY, DEVICE_MEMSET, DEVICE_GRAPH, N_DEVICE_WHATS };

extern const char *const torsh_device_what_names[N_DEVICE_WHATS];

/* One of them. */
struct device_span {
	enum device_what what;
	uint32_t name; /* label of a kernel's */
	uint32_t kind; /* enum copy_kind of a copy */
	uint64_t bytes; /* of copies and memsets */
	bool is_timed; /* else the next two are none of the device's */
	uint64_t begin_ns, duration_ns;
	uint32_t correlation; /* 0: of no launch that is known */
	uint32_t device, context, stream, graph;
	uint64_t node;
};

/* Is the event one of these? Then *span is filled. */
bool torsh_device_span(const struct event *event, struct device_span *span);

/* Does it say what a device was given, without when it did that? Then *span is filled. */
bool torsh_device_untimed(const struct event *event, struct device_span *span);

/* "HtoD" and the like; "?" of one that is not known. */
const char *torsh_copy_name(uint32_t kind);

/* "Pinned" and the like, of enum device_memory. */
const char *torsh_memory_name(uint32_t memory);

/* Is that a call of the runtime, rather than of the driver? By its name. */
static inline bool torsh_api_is_runtime(const char *name)
{
	return strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0;
}

#define DEVICE_TITLE_BYTES 64

/*
 * What viewers of Kineto's traces know a copy or a memset by: "Memcpy HtoD (Pinned -> Device)"; a graph of which no more is
 * known than when it ran as a whole is a "CUDA graph". out has room for DEVICE_TITLE_BYTES. Returns false of a kernel, which
 * has its name.
 */
bool torsh_device_title(const struct event *event, char *out);

#define CAUSED_MAX ((UINT32_C(1) << 31) - 1)

/* What one launch is the cause of. */
struct device_caused {
	uint64_t ns;
	uint32_t n : 31; /* kernels, copies and memsets: those of a graph are several */
	uint32_t is_launched : 1; /* the call that has this number was seen, before or after */
	uint32_t n_untimed; /* others, of which no times are known */
};

struct device_page;

/* Sums by launch, of one process: some 20 bytes for each. */
struct device_work {
	struct graph_nodes captured; /* in an operator: 1; their ns are none of the launch's */
	struct key_index index; /* by correlation: index of pages */
	struct device_page *pages;
	size_t n, n_room;
	uint64_t n_spans, n_launches;
	bool is_seen; /* devices were recorded, or would have been */
};

void torsh_device_work_create(struct device_work *work);
void torsh_device_work_destroy(struct device_work *work);

/* Take whatever event of the process there is, told inside of an operator or not. */
void torsh_device_work_add(struct device_work *work, const struct event *event, bool is_in_operator);

/* What the launch with this number caused; zeros: nothing that was seen. */
struct device_caused torsh_device_work_by(const struct device_work *work, uint32_t correlation);

/* Its nanoseconds. */
uint64_t torsh_device_work_of(const struct device_work *work, uint32_t correlation);

/* What the operator that was marked with this number took on its accelerator by itself. */
uint64_t torsh_device_work_marked(const struct device_work *work, uint32_t number);

#endif
