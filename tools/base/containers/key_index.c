/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/key_index.h"

#include <stdlib.h>

#include "tools/base/memory.h"

#define FIRST_BITS 4u

static void set_bits(struct key_index *index, uint32_t n_bits)
{
	index->slots = torsh_memory_table((size_t)1 << n_bits, sizeof(*index->slots));
	index->mask = (1u << n_bits) - 1;
	index->shift = 64 - n_bits;
}

void torsh_key_index_create(struct key_index *index)
{
	*index = (struct key_index){0};
	set_bits(index, FIRST_BITS);
}

void torsh_key_index_destroy(struct key_index *index)
{
	free(index->slots);
	*index = (struct key_index){0};
}

void torsh_key_index_double(struct key_index *index)
{
	struct key_slot *old = index->slots;
	uint32_t n_old = index->mask + 1;

	set_bits(index, 64 - index->shift + 1);
	for (uint32_t i = 0; i < n_old; i++) {
		if (old[i].key)
			*torsh_key_index_find(index, old[i].key) = old[i];
	}
	free(old);
}
