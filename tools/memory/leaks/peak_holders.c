/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/peak_holders.h"

#include <stdlib.h>

/* Divide n sites of one process. */
static void divide(struct peak_holders *holders, const struct allocation_site *sites, size_t n,
		   struct symbols *symbols)
{
	struct address_kinds kinds;
	struct import_runs runs;
	struct intern names = {0};
	const char **packages;

	torsh_address_kinds_start(&kinds, sites->process, symbols);
	torsh_import_runs_find(&runs, &kinds);
	packages = torsh_kept_imports_find(&kinds, &runs, sites, n, &names);
	for (size_t i = 0; i < n; i++) {
		if (packages[i])
			torsh_kept_imports_add(&holders->imports, &sites[i], packages[i], false);
		else
			torsh_sites_put(&holders->sites, &sites[i]);
	}
	free(packages);
	torsh_intern_free(&names);
	torsh_import_runs_end(&runs);
	torsh_address_kinds_end(&kinds);
}

void torsh_peak_holders_find(struct peak_holders *holders, const struct peak *peak,
			     const struct recording *recording, struct symbols *symbols)
{
	struct allocation_sites all = {.view = holders->sites.view, .depth = holders->sites.depth};

	torsh_peak_collect(&all, peak, recording);
	for (size_t i = 0, end; i < all.n; i = end) {
		for (end = i + 1; end < all.n && all.items[end].process == all.items[i].process;)
			end++;
		divide(holders, all.items + i, end - i, symbols);
	}
	torsh_sites_free(&all);
	torsh_kept_imports_sort(&holders->imports);
}

void torsh_peak_holders_free(struct peak_holders *holders)
{
	free(holders->imports.items);
	torsh_sites_free(&holders->sites);
}
