/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Unnested spans: one pass (tools/timeline/spans.c) finds them for the next one. */
#ifndef TORSH_TIMELINE_PREPASS_UNNESTED_SPANS_H
#define TORSH_TIMELINE_PREPASS_UNNESTED_SPANS_H

#include "tools/timeline/spans.h"

/* Ordinals of one process's spans. */
struct unnested_list {
	uint32_t process;
	uint64_t *ordinals;
	size_t n, n_room;
};

struct unnested_spans {
	struct unnested_list *lists;
	size_t n, n_room;
};

/* Returns the spans of a process by its number, or NULL; the argument may be NULL. */
const struct unnested_list *torsh_unnested_spans_of(const struct unnested_spans *unnested,
						    uint32_t process);

/* Add the ordinal of a span of any process, in any order. */
void torsh_unnested_spans_add(struct unnested_spans *unnested, const struct span *span);

/* Sort by ordinal. Call after the last add. */
void torsh_unnested_spans_sort(struct unnested_spans *unnested);

#endif
