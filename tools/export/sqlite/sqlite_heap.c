/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The heap over time by allocation site, and what each site allocated. */
#include <stdlib.h>

#include "tools/export/sqlite/sqlite.h"
#include "tools/frames/blamed_line.h"
#include "tools/memory/heap_series.h"
#include "tools/symbols/frame_text.h"

#define NS_PER_S 1e9

void torsh_sqlite_line(struct sqlite *sqlite, const struct allocation_site *site)
{
	struct database *database = &sqlite->database;
	struct blamed_line blamed =
		torsh_blamed_line(site->frames, site->n_frames, torsh_working_directory());
	const struct frame *frame = blamed.where == FRAME_NONE ? NULL : site->frames[blamed.where];
	char name[256];

	torsh_database_text(database, frame ? torsh_frame_name(frame, name, sizeof(name)) : NULL);
	torsh_database_text(database, frame ? frame->file : NULL);
	torsh_database_known(database, frame && frame->line > 0, frame ? (uint64_t)frame->line : 0);
	torsh_database_known(database, frame, blamed.is_own);
}

static void insert_moment(const struct heap_series *series, size_t number,
			  const struct site_amount *amounts, void *context)
{
	struct sqlite *sqlite = context;
	struct database *database = &sqlite->database;
	const struct memory_moment *moment = &series->moments.items[number];
	uint32_t process = series->moments.process->number;

	if (!torsh_trace_has(sqlite->trace, moment->at_ns))
		return;
	torsh_database_fill(database, INSERT_MOMENT);
	torsh_database_number(database, process);
	torsh_database_number(database, number);
	torsh_database_number(database, moment->at_ns);
	torsh_database_word(database, torsh_memory_moment_names[moment->kind]);
	torsh_database_text(database, moment->mark);
	torsh_database_known(database, moment->has_step, moment->step);
	torsh_database_number(database, moment->bytes);
	torsh_database_number(database, moment->blocks);
	torsh_database_insert(database);
	for (size_t i = 0; i < series->sites.n; i++) {
		if (!amounts[i].bytes && !amounts[i].blocks)
			continue;
		torsh_database_fill(database, INSERT_HEAP_SERIES);
		torsh_database_number(database, process);
		torsh_database_number(database, number);
		torsh_database_number(database, moment->at_ns);
		torsh_database_number(database, i);
		torsh_database_number(database, amounts[i].bytes);
		torsh_database_number(database, amounts[i].blocks);
		torsh_database_insert(database);
	}
}

/* What sites allocated, by site. */
struct site_sums {
	struct site_amount *allocated, *temporary, *peak, *live;
	double seconds; /* that the process was recorded for; 0: not known */
};

static void put_amount(struct database *database, const struct site_amount *amount)
{
	torsh_database_number(database, amount->blocks);
	torsh_database_number(database, amount->bytes);
}

static void insert_site(struct sqlite *sqlite, const struct heap_series *series, size_t i,
			const struct site_sums *sums)
{
	struct database *database = &sqlite->database;
	const struct allocation_site *site = &series->sites.items[i];
	uint32_t stack = i ? torsh_sqlite_stack(sqlite, site->process, site->stack) : 0;

	torsh_database_fill(database, INSERT_SITE);
	torsh_database_number(database, site->process->number);
	torsh_database_number(database, i);
	torsh_database_known(database, stack, stack);
	torsh_sqlite_line(sqlite, site);
	torsh_database_text(database, torsh_site_operator(site));
	torsh_database_text(database, torsh_site_module(site));
	put_amount(database, &sums->allocated[i]);
	put_amount(database, &sums->temporary[i]);
	put_amount(database, &sums->peak[i]);
	put_amount(database, &sums->live[i]);
	torsh_database_real(database, sums->seconds > 0,
			    (double)sums->allocated[i].blocks / sums->seconds);
	torsh_database_real(database, sums->seconds > 0,
			    (double)sums->allocated[i].bytes / sums->seconds);
	torsh_database_number(database, i ? 1 : series->n_others);
	torsh_database_insert(database);
}

static void insert_sites(struct sqlite *sqlite, const struct heap_series *series)
{
	const struct recorded_process *process = series->moments.process;
	struct site_sums sums = {
		.allocated = torsh_heap_series_sum(series, SITES_ALLOCATED),
		.temporary = torsh_heap_series_sum(series, SITES_TEMPORARY),
		.peak = torsh_heap_series_sum(series, SITES_PEAK),
		.live = torsh_heap_series_sum(series, SITES_LIVE),
	};
	uint64_t end_ns = torsh_memory_end_ns(process);

	if (end_ns > process->start_ns)
		sums.seconds = (double)(end_ns - process->start_ns) / NS_PER_S;
	for (size_t i = !series->n_others; i < series->sites.n; i++)
		insert_site(sqlite, series, i, &sums);
	free(sums.allocated);
	free(sums.temporary);
	free(sums.peak);
	free(sums.live);
}

void torsh_sqlite_insert_heap(struct sqlite *sqlite, struct recorded_process *process)
{
	struct heap_series series;

	torsh_heap_series_make(&series, process, sqlite->trace->symbols, sqlite->trace->is_all);
	if (series.moments.n) {
		insert_sites(sqlite, &series);
		torsh_heap_series_each(&series, insert_moment, sqlite);
	}
	torsh_heap_series_free(&series);
}
