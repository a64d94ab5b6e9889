/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/number_index.h"

#include <stdlib.h>

#include "tools/base/memory.h"

#define FIRST_SLOTS 64u
#define PREFETCHED 16u /* rows: the slots of so many are loaded at once */

static void set_slots(struct number_index *index, uint32_t n_slots)
{
	*index = (struct number_index){.n_slots = n_slots,
				       .number_bits = 32 - (uint32_t)__builtin_clz(n_slots)};
	index->number_mask = (uint32_t)((UINT64_C(1) << index->number_bits) - 1);
	index->slots = torsh_memory_table(n_slots, sizeof(*index->slots));
}

void torsh_number_index_create(struct number_index *index)
{
	set_slots(index, FIRST_SLOTS);
}

void torsh_number_index_destroy(struct number_index *index)
{
	free(index->slots);
	*index = (struct number_index){0};
}

void torsh_number_index_grow(struct number_index *index)
{
	uint32_t n_slots = index->n_slots;

	free(index->slots);
	set_slots(index, n_slots + n_slots / 2);
}

void torsh_number_index_add(struct number_index *index, uint32_t number, uint32_t hash)
{
	uint32_t i = torsh_number_index_home(index, hash);

	while (index->slots[i])
		i = i + 1 == index->n_slots ? 0 : i + 1;
	index->slots[i] = number | (uint32_t)((uint64_t)hash << index->number_bits);
	index->n_used++;
}

void torsh_number_index_add_all(struct number_index *index, const uint32_t *hashes, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		uint32_t later = i + PREFETCHED < n ? i + PREFETCHED : i;

		__builtin_prefetch(&index->slots[torsh_number_index_home(index, hashes[later])], 1);
		torsh_number_index_add(index, i, hashes[i]);
	}
}
