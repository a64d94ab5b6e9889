/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/async_spans.h"

#include <search.h>

#include "tools/base/die.h"

/* By what its end names: an operator's record, a range's number. */
static int compare_async(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	uint64_t key_x = x->kind == SPAN_OPERATOR ? x->record : x->range;
	uint64_t key_y = y->kind == SPAN_OPERATOR ? y->record : y->range;

	if (x->kind != y->kind)
		return (x->kind > y->kind) - (x->kind < y->kind);
	return (key_x > key_y) - (key_x < key_y);
}

struct span *torsh_async_spans_add(struct async_spans *async, struct span *span)
{
	struct span **found = torsh_need(tsearch(span, &async->tree, compare_async)), *older;

	if (*found == span)
		return NULL;
	older = *found;
	*found = span;
	return older;
}

struct span *torsh_async_spans_take(struct async_spans *async, enum span_kind kind, uint64_t number)
{
	const struct span key = {.kind = kind, .record = (uint32_t)number, .range = number};
	struct span **found = tfind(&key, &async->tree, compare_async), *span;

	if (!found)
		return NULL;
	span = *found;
	tdelete(span, &async->tree, compare_async);
	return span;
}

struct span *torsh_async_spans_take_any(struct async_spans *async)
{
	struct span *span = async->tree ? *(struct span **)async->tree : NULL;

	if (span)
		tdelete(span, &async->tree, compare_async);
	return span;
}
