/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tasks/task_names.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

void torsh_task_names_free(struct task_names *names)
{
	for (uint32_t i = 0; i < names->n; i++)
		free(names->items[i].buckets);
	free(names->items);
	torsh_hash_map_free(&names->by_key);
	*names = (struct task_names){0};
}

uint32_t torsh_task_names_find(struct task_names *names, uint32_t kind, uint32_t name)
{
	uint32_t key[] = {kind, name};
	size_t i;

	if (names->n >= TASK_NAMES_MAX && !torsh_hash_map_find(&names->by_key, key, sizeof(key)))
		key[1] = 0;
	i = torsh_hash_map_put(&names->by_key, key, sizeof(key), names->n)->value;
	if (i < names->n)
		return (uint32_t)i;
	names->items = torsh_array_reserve(names->items, names->n, &names->capacity,
					   sizeof(*names->items));
	names->items[names->n] =
		(struct task_name){.kind = kind, .name = key[1], .min_ns = UINT64_MAX};
	return names->n++;
}

void torsh_task_name_add(struct task_name *name, uint64_t duration_ns)
{
	if (!name->buckets)
		name->buckets = torsh_memory_new(TASK_BUCKETS, sizeof(*name->buckets));
	name->buckets[torsh_task_bucket(duration_ns)]++;
	name->n_ended++;
	name->total_ns += duration_ns;
	if (duration_ns < name->min_ns)
		name->min_ns = duration_ns;
	if (duration_ns > name->max_ns)
		name->max_ns = duration_ns;
}
