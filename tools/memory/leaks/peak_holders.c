/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/peak_holders.h"

#include <stdlib.h>

#include "tools/base/die.h"

/* Divide n sites of one process, from number `first` on. The ones that stay move to the front. */
static void divide(struct peak_holders *holders, size_t first, size_t n, struct symbols *symbols)
{
	const struct allocation_site *sites = holders->sites.items + first;
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
			holders->sites.items[holders->sites.n++] = sites[i];
	}
	free(packages);
	torsh_intern_free(&names);
	torsh_import_runs_end(&runs);
	torsh_address_kinds_end(&kinds);
}

void torsh_peak_holders_find(struct peak_holders *holders, const struct peak *peak,
			     const struct recording *recording, struct symbols *symbols)
{
	struct allocation_sites *sites = &holders->sites;
	size_t n;

	torsh_peak_collect(sites, peak, recording);
	n = sites->n;
	sites->n = 0;
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && sites->items[end].process == sites->items[i].process;)
			end++;
		divide(holders, i, end - i, symbols);
	}
	if (n) {
		sites->n_room = sites->n + 1;
		sites->items = torsh_need(
			reallocarray(sites->items, sites->n_room, sizeof(*sites->items)));
	}
	torsh_kept_imports_sort(&holders->imports);
}

void torsh_peak_holders_free(struct peak_holders *holders)
{
	free(holders->imports.items);
	torsh_sites_free(&holders->sites);
}
