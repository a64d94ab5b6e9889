/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/python/python_pools.h"

#include <sys/types.h>

/* Look for pools wherever one may begin. */
static void take_words_of(void *context, uint64_t address, uint64_t *words, size_t n)
{
	struct python_pools *pools = context;
	uint64_t at = (address + POOL_ALIGNMENT - 1) / POOL_ALIGNMENT * POOL_ALIGNMENT;
	uint64_t end = address + n * sizeof(*words);

	while (at < end) {
		const uint64_t *first = words + (at - address) / sizeof(*words);
		size_t n_left = (end - at) / sizeof(*words);
		struct pymalloc_pool pool;

		if (torsh_pymalloc_pool_read(&pool, at, first, n_left)) {
			pools->take(pools->context, &pool, first, n_left);
			at += pool.bytes;
		} else {
			pools->n_refused += torsh_pymalloc_is_begin(at, first, n_left);
			at += POOL_ALIGNMENT;
		}
	}
}

int torsh_python_pools_visit(struct python_pools *pools, const struct heap_range *map,
			     struct memory_reader *reader)
{
	/* A part has room in the reader's buffer, so that no pool is cut. */
	uint64_t part = READER_WORDS * sizeof(uint64_t), at = map->begin;
	int result = 0;

	while (!result && at < map->end) {
		uint64_t end = (at / part + 1) * part;

		result = torsh_memory_read(reader, at, end < map->end ? end : map->end, false,
					   take_words_of, pools);
		at = end;
	}
	return result;
}
