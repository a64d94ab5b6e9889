/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The open calls of one thread, while a walk (tools/timeline/spans.c) goes over its events. */
#ifndef TORSH_TIMELINE_OPEN_SPANS_H
#define TORSH_TIMELINE_OPEN_SPANS_H

#include "tools/timeline/spans.h"

struct open_calls {
	struct call **calls; /* n of them, outermost first; behind them some to be used again */
	uint32_t n, n_made;
	size_t n_room;
	uint32_t number; /* the framework's; 0: it was not told */
	bool is_listed; /* among the threads that may have open calls */
	uint64_t last_ns; /* of its last begin or end */
};

/* A zeroed call at place n, which the caller counts once it is filled. */
struct call *torsh_open_calls_add(struct open_calls *thread);

/* The innermost of the first n that nests, or NULL. */
struct call *torsh_open_calls_innermost(const struct open_calls *thread, uint32_t n);

/*
 * Take call i from its place, which gets another to be used again. Returns the call, the caller's
 * now.
 */
struct call *torsh_open_calls_take(struct open_calls *thread, uint32_t i);

bool torsh_call_is_record(const struct call *call, uint32_t record);

/* The place of the operator with that record, or UINT32_MAX. */
uint32_t torsh_open_calls_find(const struct open_calls *thread, uint32_t record);

/* The innermost operator, also one that doesn't nest, or NULL. */
struct call *torsh_open_calls_operator(const struct open_calls *thread);

#endif
