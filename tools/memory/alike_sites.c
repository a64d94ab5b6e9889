/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Merges allocation sites that are one entry for a reader: torsh_sites_merge_alike. */
#include "tools/memory/allocation_sites.h"
#include "tools/memory/stack_entries.h"

static int compare_entries(const struct allocation_site *a, const struct allocation_site *b,
			   size_t depth)
{
	int rc = torsh_sites_compare_kinds(a, b);

	(void)depth;
	if (rc)
		return rc;
	return a->entry < b->entry ? -1 : a->entry > b->entry;
}

/* Set the entries of the n sites of one process. */
static void set_entries(struct allocation_site *sites, size_t n, struct symbols *symbols)
{
	const struct recorded_process *process = sites->process;
	struct stack_entries entries;

	torsh_stack_entries_start(&entries, process, symbols);
	for (size_t i = 0; i < n; i++)
		sites[i].entry = torsh_stack_entry(&entries, sites[i].stack, sites[i].is_arena);
	torsh_stack_entries_end(&entries);
}

void torsh_sites_merge_alike(struct allocation_sites *sites, struct symbols *symbols)
{
	if (sites->is_unmerged || sites->depth || sites->view != STACK_VIEW_MERGED)
		return;
	/* Sites of a process are adjacent: they were collected in that order. */
	for (size_t i = 0, n; i < sites->n; i += n) {
		struct allocation_site *first = &sites->items[i];

		for (n = 1; i + n < sites->n && first[n].process == first->process;)
			n++;
		set_entries(first, n, symbols);
	}
	torsh_sites_merge_equal(sites, compare_entries);
}
