/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The open spans of one thread during a pass (tools/timeline/spans.c). */
#ifndef TORSH_TIMELINE_OPEN_SPANS_H
#define TORSH_TIMELINE_OPEN_SPANS_H

#include "tools/base/containers/sparse_array.h"
#include "tools/timeline/spans.h"

struct open_spans {
	struct span **spans; /* n of them, outermost first; reusable ones follow */
	uint32_t n, n_made;
	size_t n_room;
	uint32_t number; /* the framework's number of the thread; 0: it was not recorded */
	bool is_listed; /* among the threads that may have open spans */
	uint64_t last_ns; /* time of its last begin or end */
};

/* Returns a zeroed span at place n; the caller increments n once it is filled. */
struct span *torsh_open_spans_add(struct open_spans *thread);

/* Returns the innermost of the first n that nests, or NULL. */
struct span *torsh_open_spans_innermost(const struct open_spans *thread, uint32_t n);

/* Take span i out, and put a spare one in its place. Returns the span, which the caller owns. */
struct span *torsh_open_spans_take(struct open_spans *thread, uint32_t i);

/* Returns whether the span is the operator with this record number. */
bool torsh_span_has_record(const struct span *span, uint32_t record);

/* Returns the place of the operator with that record, or UINT32_MAX. */
uint32_t torsh_open_spans_find(const struct open_spans *thread, uint32_t record);

/* Returns the innermost operator, even if it doesn't nest, or NULL. */
struct span *torsh_open_spans_operator(const struct open_spans *thread);

/* The threads of a process. Starts zeroed, except `all`: torsh_sparse_array_create. */
struct open_threads {
	struct sparse_array all; /* of struct open_spans */
	struct open_spans **busy; /* those that may have open spans */
	size_t n_busy, busy_room;
};

/* List a thread among those that may have open spans. */
void torsh_open_threads_list(struct open_threads *threads, struct open_spans *thread);

/*
 * Returns the thread on which an operator with that record is open; *place is its position there.
 * NULL: none.
 */
struct open_spans *torsh_open_threads_find(struct open_threads *threads, uint32_t record,
					   uint32_t *place);

#endif
