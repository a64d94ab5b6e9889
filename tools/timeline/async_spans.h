/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The open asynchronous spans of one process, by the number that their ends refer to. */
#ifndef TORSH_TIMELINE_ASYNC_SPANS_H
#define TORSH_TIMELINE_ASYNC_SPANS_H

#include "tools/base/containers/hash_map.h"
#include "tools/timeline/spans.h"

/* Zeros are none. */
struct async_spans {
	struct hash_map map; /* of struct span; owns them */
};

/*
 * Add a span from malloc. Returns NULL, or an older span with the same number that never ended: the
 * caller frees it.
 */
struct span *torsh_async_spans_add(struct async_spans *async, struct span *span);

/*
 * Take the operator with this record, or the range with this number. Returns it for the caller to
 * free, or NULL.
 */
struct span *torsh_async_spans_take(struct async_spans *async, enum span_kind kind,
				    uint64_t number);

/*
 * Take all spans, in the order of their begins. Returns the array, which the caller frees as well
 * as the spans in it, and sets *n.
 */
struct span **torsh_async_spans_take_all(struct async_spans *async, size_t *n);

#endif
