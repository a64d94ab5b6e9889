/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/async_spans.h"

#include <stdlib.h>

#include "tools/base/die.h"

/* What the end of a span refers to: an operator's record id or a range's number. */
struct async_key {
	uint64_t kind, number;
};

static struct async_key key_of(const struct span *span)
{
	return (struct async_key){
		.kind = span->kind,
		.number = span->kind == SPAN_OPERATOR ? span->record : span->range,
	};
}

static struct span *take_key(struct async_spans *async, const struct async_key *key)
{
	size_t value;

	return torsh_hash_map_remove(&async->map, key, sizeof(*key), &value) ? (struct span *)value
									     : NULL;
}

struct span *torsh_async_spans_add(struct async_spans *async, struct span *span)
{
	const struct async_key key = key_of(span);
	struct span *older = take_key(async, &key);

	torsh_hash_map_put(&async->map, &key, sizeof(key), (uintptr_t)span);
	return older;
}

struct span *torsh_async_spans_take(struct async_spans *async, enum span_kind kind, uint64_t number)
{
	const struct async_key key = {.kind = kind,
				      .number = kind == SPAN_OPERATOR ? (uint32_t)number : number};

	return take_key(async, &key);
}

static int compare_begins(const void *a, const void *b)
{
	const struct span *x = *(struct span *const *)a, *y = *(struct span *const *)b;
	struct async_key key_x = key_of(x), key_y = key_of(y);

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (key_x.kind != key_y.kind)
		return key_x.kind < key_y.kind ? -1 : 1;
	return key_x.number < key_y.number ? -1 : key_x.number > key_y.number;
}

struct span **torsh_async_spans_take_all(struct async_spans *async, size_t *n)
{
	struct span **spans = torsh_need_items(NULL, 0, async->map.n + 1, sizeof(struct span *));
	const struct hash_entry *entry;

	*n = 0;
	for (size_t at = 0; (entry = torsh_hash_map_next(&async->map, &at));)
		spans[(*n)++] = (struct span *)entry->value;
	torsh_hash_map_free(&async->map);
	qsort(spans, *n, sizeof(*spans), compare_begins);
	return spans;
}
