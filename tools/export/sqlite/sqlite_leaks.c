/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Leaks, as torsh leaks lists them, and the counters of the recording. */
#include "tools/export/sqlite/sqlite.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/memory/moments.h"

#define NS_PER_S 1e9

static void put_classes(struct database *database, const struct class_sums *classes)
{
	static const enum block_class order[] = {BLOCKS_LOST, BLOCKS_INDIRECT, BLOCKS_POSSIBLE,
						 BLOCKS_REACHABLE, BLOCKS_UNKNOWN};

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		torsh_database_number(database, classes->bytes[order[i]]);
}

static void insert_leak(struct sqlite *sqlite, const struct allocation_site *site)
{
	struct database *database = &sqlite->database;
	const struct recorded_process *process = site->process;
	uint32_t stack = torsh_sqlite_stack(sqlite, process, site->stack);
	uint64_t end_ns = torsh_memory_end_ns(process);
	bool has_time = end_ns > process->start_ns;
	double seconds = has_time ? (double)(end_ns - process->start_ns) / NS_PER_S : 1;

	torsh_database_fill(database, INSERT_LEAK);
	torsh_database_number(database, process->number);
	torsh_database_known(database, stack, stack);
	torsh_sqlite_line(sqlite, site);
	torsh_database_text(database, torsh_site_operator(site));
	torsh_database_text(database, torsh_site_module(site));
	torsh_database_number(database, site->blocks);
	torsh_database_number(database, site->bytes);
	torsh_database_known(database, site->usable_is_known, site->usable_bytes);
	torsh_database_word(database, torsh_block_class_name(torsh_block_class_of(site)));
	put_classes(database, &site->classes);
	torsh_database_known(database, site->has_times, site->first_ns);
	torsh_database_known(database, site->has_times, site->last_ns);
	torsh_database_real(database, has_time, (double)site->blocks / seconds);
	torsh_database_real(database, has_time, (double)site->bytes / seconds);
	torsh_database_insert(database);
}

static void insert_counters(struct database *database, const struct recorded_process *process)
{
	for (size_t i = 0; i < process->n_counters; i++) {
		torsh_database_fill(database, INSERT_COUNTER);
		torsh_database_number(database, process->number);
		torsh_database_text(database, process->counters[i].name);
		torsh_database_number(database, process->counters[i].value);
		torsh_database_insert(database);
	}
}

void torsh_sqlite_insert_leaks(struct sqlite *sqlite)
{
	const struct trace *trace = sqlite->trace;
	struct leaks leaks = {0};

	torsh_leaks_find(&leaks, trace->processes, trace->n_processes, trace->symbols,
			 trace->suppress);
	torsh_sites_find_frames(&leaks.found, trace->symbols, leaks.found.n);
	torsh_sites_sort(&leaks.found, ORDER_BYTES);
	torsh_sites_name(&leaks.found, trace->symbols, leaks.found.n);
	for (size_t i = 0; i < leaks.found.n; i++)
		insert_leak(sqlite, &leaks.found.items[i]);
	torsh_leaks_free(&leaks);
	for (size_t i = 0; i < trace->n_processes; i++)
		insert_counters(&sqlite->database, trace->processes[i]);
}
