/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The first sites of many: torsh_sites_collect_first. At the peak of a program that imports PyTorch
 * half a million stacks hold memory, and a report has a thousand. So all are summed in rows first,
 * and then only those that are first are made of the recording again.
 */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"
#include "tools/memory/allocation_sites.h"
#include "tools/memory/stack_entries.h"

/* The sum of sites that are merged. */
struct site_row {
	uint64_t blocks, bytes;
	uint32_t process; /* in the source */
	uint32_t stack; /* as it is shown, of the first of them */
};

struct collector {
	const struct sites_source *source;
	bool is_alike;
	enum stack_view view;
	struct symbols *symbols;
	struct site_row *rows;
	size_t n_rows, rows_room;
	struct sparse_array *rows_of; /* by process: uint32_t by shown stack: its row + 1 */
	uint32_t process; /* whose sites are given */
	struct stack_entries entries; /* of this process */
	struct sparse_array by_entry; /* uint32_t by entry: its row + 1 */
	struct allocation_sites *sites; /* the first ones */
	uint32_t *site_of; /* by row: its site + 1; 0: it isn't among the first */
};

/* Returns the stack as it is shown, and where its row is kept. */
static uint32_t *row_of(const struct collector *collector, const struct allocation_site *site,
			uint32_t *shown)
{
	*shown = torsh_stack_view(collector->source->processes[collector->process], site->stack,
				  collector->symbols, collector->view);
	return torsh_sparse_array_at(&collector->rows_of[collector->process], *shown);
}

static uint32_t add_row(struct collector *collector, uint32_t shown)
{
	collector->rows = torsh_array_reserve(collector->rows, collector->n_rows,
					      &collector->rows_room, sizeof(*collector->rows));
	collector->rows[collector->n_rows++] =
		(struct site_row){.process = collector->process, .stack = shown};
	return (uint32_t)collector->n_rows;
}

/* Returns the row + 1 of a stack that has none yet. */
static uint32_t find_row(struct collector *collector, uint32_t shown)
{
	uint32_t *row;

	if (!collector->is_alike)
		return add_row(collector, shown);
	row = torsh_sparse_array_at(&collector->by_entry,
				    torsh_stack_entry(&collector->entries, shown, false));
	if (!*row)
		*row = add_row(collector, shown);
	return *row;
}

static void sum_site(const struct allocation_site *site, void *context)
{
	struct collector *collector = context;
	uint32_t shown, *row = row_of(collector, site, &shown);

	if (!*row)
		*row = find_row(collector, shown);
	collector->rows[*row - 1].blocks += site->blocks;
	collector->rows[*row - 1].bytes += site->bytes;
}

static void sum_process(struct collector *collector)
{
	const struct recorded_process *process = collector->source->processes[collector->process];

	torsh_sparse_array_create(&collector->rows_of[collector->process], sizeof(uint32_t));
	if (collector->is_alike) {
		torsh_stack_entries_start(&collector->entries, process, collector->symbols);
		torsh_sparse_array_create(&collector->by_entry, sizeof(uint32_t));
	}
	torsh_sites_each(process, collector->source->what, sum_site, collector);
	if (collector->is_alike) {
		torsh_stack_entries_end(&collector->entries);
		torsh_sparse_array_destroy(&collector->by_entry);
	}
}

/* Leave the first n of the candidates. */
static void cut(struct allocation_sites *candidates, enum sites_order order, size_t n)
{
	torsh_sites_sort(candidates, order);
	if (candidates->n > n)
		candidates->n = n;
}

/* Find the first rows. The result has a site for each, with its row as entry. */
static struct allocation_sites find_first(const struct collector *collector, enum sites_order order,
					  size_t n_first)
{
	struct allocation_sites first = {0};
	bool is_cut = false;

	for (size_t i = 0; i < collector->n_rows; i++) {
		const struct site_row *row = &collector->rows[i];
		struct allocation_site site = {
			.process = collector->source->processes[row->process],
			.stack = row->stack,
			.blocks = row->blocks,
			.bytes = row->bytes,
			.entry = (uint32_t)i,
		};

		if (is_cut &&
		    torsh_sites_compare_order(order, &first.items[n_first - 1], &site) < 0)
			continue;
		torsh_sites_put(&first, &site);
		if (first.n < 2 * n_first)
			continue;
		cut(&first, order, n_first);
		is_cut = true;
	}
	cut(&first, order, n_first);
	return first;
}

/* Count the rows that aren't among the first, and make room for the others. */
static void divide(struct collector *collector, const struct allocation_sites *first)
{
	struct allocation_sites *sites = collector->sites;

	collector->site_of =
		torsh_need_items(NULL, 0, collector->n_rows, sizeof(*collector->site_of));
	sites->items = torsh_need_items(NULL, 0, first->n, sizeof(*sites->items));
	sites->n = sites->n_room = first->n;
	for (uint32_t i = 0; i < first->n; i++)
		collector->site_of[first->items[i].entry] = i + 1;
	for (size_t i = 0; i < collector->n_rows; i++) {
		if (collector->site_of[i])
			continue;
		sites->rest.n++;
		sites->rest.blocks += collector->rows[i].blocks;
		sites->rest.bytes += collector->rows[i].bytes;
	}
}

static void merge_site(const struct allocation_site *site, void *context)
{
	struct collector *collector = context;
	uint32_t shown, row = *row_of(collector, site, &shown),
			number = collector->site_of[row - 1];
	struct allocation_site *first;

	if (!number)
		return;
	first = &collector->sites->items[number - 1];
	if (first->process) {
		torsh_sites_merge_into(first, site);
	} else {
		*first = *site;
		first->stack = shown;
	}
}

void torsh_sites_collect_first(struct allocation_sites *sites, const struct sites_source *source,
			       bool is_alike, enum sites_order order, size_t n_first,
			       struct symbols *symbols)
{
	size_t n = source->n_processes;
	struct collector collector = {
		.source = source,
		.is_alike = is_alike && !sites->is_unmerged && sites->view == STACK_VIEW_MERGED,
		.view = sites->view,
		.symbols = symbols,
		.sites = sites,
		.rows_of = torsh_need_items(NULL, 0, n, sizeof(*collector.rows_of)),
	};
	struct allocation_sites first;

	for (collector.process = 0; collector.process < n; collector.process++)
		sum_process(&collector);
	first = find_first(&collector, order, n_first);
	divide(&collector, &first);
	torsh_sites_free(&first);
	for (collector.process = 0; collector.process < n; collector.process++) {
		torsh_sites_each(source->processes[collector.process], source->what, merge_site,
				 &collector);
		torsh_sparse_array_destroy(&collector.rows_of[collector.process]);
	}
	free(collector.rows_of);
	free(collector.rows);
	free(collector.site_of);
}
