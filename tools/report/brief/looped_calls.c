/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/brief/looped_calls.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

static void end_loop(struct looped_call *call)
{
	if (call->n >= LOOP_CALLS_MIN) {
		call->n_all += call->n;
		call->ns += call->end_ns - call->first_ns;
	}
	call->n = 0;
}

static struct looped_call *find(struct looped_calls *calls, const struct span *span)
{
	const uint32_t key[] = {span->name, span->inputs, span->stack};
	const struct hash_entry *entry = torsh_hash_map_find(&calls->known, key, sizeof(key));

	if (entry)
		return &calls->items[entry->value];
	torsh_hash_map_put(&calls->known, key, sizeof(key), calls->n);
	calls->items =
		torsh_array_reserve(calls->items, calls->n, &calls->n_room, sizeof(*calls->items));
	calls->items[calls->n] = (struct looped_call){
		.name = span->name, .inputs = span->inputs, .stack = span->stack};
	return &calls->items[calls->n++];
}

void torsh_looped_calls_add(struct looped_calls *calls, const struct span *span, size_t step,
			    uint64_t elements)
{
	struct looped_call *call;

	if (!elements || elements > LOOP_ELEMENTS_MAX || torsh_span_outer_operator(span))
		return;
	call = find(calls, span);
	if (call->step != step)
		end_loop(call);
	if (!call->n)
		call->first_ns = span->start_ns;
	call->step = step;
	call->n++;
	call->end_ns = span->end_ns;
}

const struct looped_call *torsh_looped_calls_longest(struct looped_calls *calls)
{
	const struct looped_call *longest = NULL;

	for (size_t i = 0; i < calls->n; i++) {
		struct looped_call *call = &calls->items[i];

		end_loop(call);
		if (call->ns && (!longest || call->ns > longest->ns))
			longest = call;
	}
	return longest;
}

void torsh_looped_calls_free(struct looped_calls *calls)
{
	torsh_hash_map_free(&calls->known);
	free(calls->items);
	*calls = (struct looped_calls){0};
}
