/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/peak_holders.h"

#include <stdlib.h>

/* Divide the sites of one process. */
static void divide(struct peak_holders *holders, const struct site_reader *sites,
		   const struct recorded_process *process, struct symbols *symbols)
{
	struct address_kinds kinds;
	struct import_runs runs;
	struct intern names = {0};
	const char **packages;

	if (!sites->n)
		return;
	torsh_address_kinds_start(&kinds, process, symbols);
	torsh_import_runs_find(&runs, &kinds);
	packages = torsh_kept_imports_find(&kinds, &runs, sites, &names);
	for (size_t i = 0; i < sites->n; i++) {
		struct allocation_site site = torsh_site_reader_at(sites, i);

		if (packages[i])
			torsh_kept_imports_add(&holders->imports, &site, packages[i], false);
		else
			torsh_sites_put(&holders->sites, &site);
	}
	free(packages);
	torsh_intern_free(&names);
	torsh_import_runs_end(&runs);
	torsh_address_kinds_end(&kinds);
}

/* Divide what a process had at the session's peak. */
static void divide_share(struct peak_holders *holders, const struct recorded_process *process,
			 struct symbols *symbols)
{
	struct allocation_sites share = {0};
	struct site_reader reader;

	torsh_sites_collect(&share, process, SITES_SESSION_PEAK);
	reader = torsh_site_reader_of(share.items, share.n);
	divide(holders, &reader, process, symbols);
	torsh_sites_free(&share);
}

void torsh_peak_holders_find(struct peak_holders *holders, const struct peak *peak,
			     const struct recording *recording, struct symbols *symbols)
{
	if (peak->process) {
		struct site_reader reader = torsh_site_reader_at_peak(peak->process);

		divide(holders, &reader, peak->process, symbols);
		torsh_site_reader_end(&reader);
	} else {
		for (size_t i = 0; i < recording->n_processes; i++)
			divide_share(holders, recording->processes[i], symbols);
	}
	torsh_kept_imports_sort(&holders->imports);
}

void torsh_peak_holders_free(struct peak_holders *holders)
{
	free(holders->imports.items);
	torsh_sites_free(&holders->sites);
}
