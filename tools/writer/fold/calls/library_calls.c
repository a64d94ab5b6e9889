/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/calls/library_calls.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

static struct library_call_key key_of(const struct event_library_call *call)
{
	return (struct library_call_key){
		.m = call->m,
		.n = call->n,
		.k = call->k,
		.batch = call->batch,
		.name = call->name,
		.routine = call->routine,
		.library = call->library,
		.type = call->type,
		.letters = call->letters,
		.shape = call->shape,
		.details = call->details,
	};
}

static struct library_call_sum *find(struct library_calls *calls,
				     const struct library_call_key *key)
{
	const struct hash_entry *entry = torsh_hash_map_find(&calls->by_key, key, sizeof(*key));

	return entry ? &calls->rows[entry->value] : NULL;
}

static struct library_call_sum *add(struct library_calls *calls, const struct library_call_key *key)
{
	struct library_call_sum *row;

	calls->rows = torsh_array_reserve(calls->rows, calls->n_rows, &calls->capacity,
					  sizeof(*calls->rows));
	torsh_hash_map_put(&calls->by_key, key, sizeof(*key), calls->n_rows);
	row = &calls->rows[calls->n_rows++];
	*row = (struct library_call_sum){.key = *key, .min_ns = UINT64_MAX};
	return row;
}

static struct library_call_sum *rest_of(struct library_calls *calls, struct library_call_key key)
{
	struct library_call_sum *row;

	key.m = key.n = key.k = key.batch = 0;
	key.letters = key.shape = key.details = 0;
	key.is_rest = 1;
	row = find(calls, &key);
	return row ? row : add(calls, &key);
}

void torsh_library_calls_take(struct library_calls *calls, const struct event_library_call *call)
{
	const struct library_call_key key = key_of(call);
	struct library_call_sum *row = find(calls, &key);

	if (!row)
		row = calls->n_rows < LIBRARY_CALLS_MAX ? add(calls, &key) : rest_of(calls, key);
	row->calls++;
	row->total_ns += call->duration_ns;
	row->min_ns = call->duration_ns < row->min_ns ? call->duration_ns : row->min_ns;
	row->max_ns = call->duration_ns > row->max_ns ? call->duration_ns : row->max_ns;
	calls->is_changed = true;
}

void torsh_library_calls_free(struct library_calls *calls)
{
	torsh_hash_map_free(&calls->by_key);
	free(calls->rows);
	*calls = (struct library_calls){0};
}
