/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The allocation sites at the peak of the heap. */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/export/sqlite/sqlite.h"
#include "tools/export/stacks/merged_stacks.h"
#include "tools/memory/peak.h"

/* What a stack held. */
struct held {
	uint64_t blocks, bytes;
	uint32_t operator, module; /* labels as of struct allocation_site */
};

/* The stacks of one process that held memory. */
struct holders {
	struct symbols *symbols;
	struct weighed_stacks stacks; /* as they are shown */
	struct held *held; /* by number */
	size_t held_room;
};

static void add_holder(const struct allocation_site *site, void *context)
{
	struct holders *holders = context;
	/* The view only appends to the process's table of stacks. */
	uint32_t shown = torsh_stack_view((struct recorded_process *)site->process, site->stack,
					  holders->symbols, STACK_VIEW_MERGED);
	size_t n = holders->stacks.n;
	uint32_t number = torsh_weighed_stacks_add(&holders->stacks, shown, EXPORT_PEAK,
						   site->blocks, site->bytes);
	struct held *held;

	if (number == n) {
		holders->held = torsh_array_reserve(holders->held, n, &holders->held_room,
						    sizeof(*holders->held));
		holders->held[n].operator= site->operator;
		holders->held[n].module = site->module;
	}
	held = &holders->held[number];
	held->blocks += site->blocks;
	held->bytes += site->bytes;
	if (held->operator!= site->operator)
		held->operator= PROFILE_SEVERAL;
	if (held->module != site->module)
		held->module = PROFILE_SEVERAL;
}

static void insert_site(struct sqlite *sqlite, const struct allocation_site *site,
			const char *merged)
{
	struct database *database = &sqlite->database;
	uint32_t stack = torsh_sqlite_stack(sqlite, site->process, site->stack);

	torsh_database_fill(database, INSERT_PEAK_ALLOCATION);
	torsh_database_number(database, site->process->number);
	torsh_database_known(database, stack, stack);
	torsh_database_number(database, site->blocks);
	torsh_database_number(database, site->bytes);
	torsh_database_text(database, torsh_site_operator(site));
	torsh_database_text(database, torsh_site_module(site));
	torsh_database_text(database, merged);
	torsh_database_insert(database);
}

static void insert_holder(struct sqlite *sqlite, const struct holders *holders, size_t number)
{
	const struct held *held = &holders->held[number];

	insert_site(sqlite,
		    &(struct allocation_site){
			    .process = holders->stacks.process,
			    .stack = holders->stacks.items[number],
			    .blocks = held->blocks,
			    .bytes = held->bytes,
			    .operator= held->operator,
			    .module = held->module,
		    },
		    NULL);
}

/* Stacks that are counted together. */
struct counted {
	struct stack_place at;
	struct export_value value;
};

/* Insert what is counted together. */
static void insert_counted(struct sqlite *sqlite, const struct holders *holders,
			   const struct merged_stacks *merged)
{
	struct hash_map by_place = {0};
	struct counted *counted = NULL;
	size_t n = 0, n_room = 0;

	for (size_t i = 0; i < holders->stacks.n; i++) {
		const struct stack_place *at = &merged->places[i];
		size_t k;

		if (!at->label)
			continue;
		k = torsh_hash_map_put(&by_place, at, sizeof(*at), n)->value;
		if (k == n) {
			counted = torsh_array_reserve(counted, n, &n_room, sizeof(*counted));
			counted[n++].at = *at;
		}
		counted[k].value.blocks += holders->held[i].blocks;
		counted[k].value.bytes += holders->held[i].bytes;
	}
	for (size_t i = 0; i < n; i++)
		insert_site(sqlite,
			    &(struct allocation_site){
				    .process = holders->stacks.process,
				    .stack = counted[i].at.stack,
				    .blocks = counted[i].value.blocks,
				    .bytes = counted[i].value.bytes,
			    },
			    merged->labels[counted[i].at.label]);
	torsh_hash_map_free(&by_place);
	free(counted);
}

static void insert_holders(struct sqlite *sqlite, const struct holders *holders,
			   const struct export_value *totals)
{
	struct merged_stacks merged = {0};

	if (!sqlite->trace->is_all)
		torsh_stacks_merge(&merged, &holders->stacks, totals, sqlite->trace->symbols);
	for (size_t i = 0; i < holders->stacks.n; i++) {
		if (!merged.places || !merged.places[i].label)
			insert_holder(sqlite, holders, i);
	}
	if (merged.places)
		insert_counted(sqlite, holders, &merged);
	torsh_stacks_merge_free(&merged);
}

/* Insert what processes held. of: SITES_PEAK or SITES_SESSION_PEAK */
static void insert_all_holders(struct sqlite *sqlite,
			       const struct recorded_process *const *processes, size_t n,
			       enum sites_of of)
{
	struct holders *holders = torsh_need_items(NULL, 0, n, sizeof(*holders));
	struct export_value totals[N_EXPORT_WEIGHTS] = {{0}};

	for (size_t i = 0; i < n; i++) {
		holders[i].symbols = sqlite->trace->symbols;
		torsh_weighed_stacks_create(&holders[i].stacks, processes[i]);
		torsh_sites_each(processes[i], of, add_holder, &holders[i]);
		torsh_weighed_stacks_end(&holders[i].stacks);
		torsh_weighed_stacks_sum(&holders[i].stacks, totals);
	}
	for (size_t i = 0; i < n; i++) {
		if (holders[i].stacks.n)
			insert_holders(sqlite, &holders[i], totals);
		torsh_weighed_stacks_free(&holders[i].stacks);
		free(holders[i].held);
	}
	free(holders);
}

void torsh_sqlite_insert_peak(struct sqlite *sqlite)
{
	const struct trace *trace = sqlite->trace;
	struct peak peak =
		torsh_peak_choose(trace->recording, trace->processes, trace->n_processes);
	struct database *database = &sqlite->database;

	if (!peak.is_known)
		return;
	torsh_database_fill(database, INSERT_PEAK);
	torsh_database_known(database, peak.process, peak.process ? peak.process->number : 0);
	torsh_database_number(database, peak.at_ns);
	torsh_database_number(database, peak.bytes);
	torsh_database_number(database, peak.blocks);
	torsh_database_insert(database);
	if (peak.process)
		insert_all_holders(sqlite, &peak.process, 1, SITES_PEAK);
	else
		insert_all_holders(
			sqlite, (const struct recorded_process *const *)trace->recording->processes,
			trace->recording->n_processes, SITES_SESSION_PEAK);
}
