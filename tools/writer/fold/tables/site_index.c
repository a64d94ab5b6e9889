/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/site_index.h"

#include <stdlib.h>

#include "tools/base/memory.h"

static void grow(struct number_index *index, struct site_stacks stacks)
{
	uint32_t n = index->n_used + 1, *hashes = torsh_memory_table(n, sizeof(*hashes));

	for (uint32_t i = 1; i < n; i++)
		hashes[i] = torsh_site_hash(torsh_site_stack(stacks, i));
	torsh_number_index_grow(index);
	torsh_number_index_add_all(index, hashes, n);
	free(hashes);
}

void torsh_site_add(struct number_index *index, struct site_stacks stacks)
{
	uint32_t site = index->n_used + 1;

	if (torsh_number_index_is_full(index))
		grow(index, stacks);
	torsh_number_index_add(index, site, torsh_site_hash(torsh_site_stack(stacks, site)));
}
