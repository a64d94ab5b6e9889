/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/holders/holder_uses.h"

#include <stdlib.h>

#include "tools/base/memory.h"

static int compare_uses(const void *a, const void *b)
{
	const struct holder_use *const *x = a, *const *y = b;

	return ((*x)->address > (*y)->address) - ((*x)->address < (*y)->address);
}

/* Returns the use of the block at the address; NULL: no holder is about it. */
static struct holder_use *find_use(struct holder_use *const *uses, uint32_t n, uint64_t address)
{
	uint32_t from = 0, to = n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (uses[middle]->address < address)
			from = middle + 1;
		else
			to = middle;
	}
	return from < n && uses[from]->address == address ? uses[from] : NULL;
}

/* There are many blocks, in no order, and few holders. */
void torsh_holder_uses_find(struct holders *holders, const struct judged_moment *moment)
{
	struct holder_use **uses = torsh_memory_new((size_t)holders->n + 1, sizeof(*uses)), *use;

	for (uint32_t i = 0; i < holders->n; i++) {
		uses[i] = &holders->items[i].use;
		uses[i]->has_reads = moment->has_reads;
		uses[i]->step = moment->step;
	}
	qsort(uses, holders->n, sizeof(*uses), compare_uses);
	for (uint64_t i = 0; i < moment->n_blocks; i++) {
		use = find_use(uses, holders->n, moment->blocks[i].address);
		if (use)
			use->allocated = moment->blocks[i].stamp;
	}
	for (uint32_t i = 0; i < moment->n_reads; i++) {
		const struct moment_read *read = &moment->reads[i];

		use = find_use(uses, holders->n, read->address);
		/* One of a former block at this address is none. */
		if (!use || !read->operator|| read->stamp<use->allocated)
			continue;
		use->read = read->stamp;
		use->operator= read->operator;
		use->read_step = read->step;
	}
	free(uses);
}
