/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of CUDA and waits for devices, summed up, and the hardware counters of kernels. */
#include <math.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/sqlite/sqlite.h"

void torsh_sqlite_calls_create(struct sqlite *sqlite)
{
	size_t n = sqlite->trace->n_processes;

	sqlite->calls = torsh_need_items(NULL, 0, n, sizeof(*sqlite->calls));
	for (size_t i = 0; i < n; i++) {
		torsh_device_calls_create(&sqlite->calls[i].all);
		torsh_call_window_create(&sqlite->calls[i].labels);
	}
	torsh_counters_create(&sqlite->counters);
}

void torsh_sqlite_calls_destroy(struct sqlite *sqlite)
{
	for (size_t i = 0; i < sqlite->trace->n_processes; i++) {
		torsh_device_calls_free(&sqlite->calls[i].all);
		torsh_call_window_destroy(&sqlite->calls[i].labels);
	}
	free(sqlite->calls);
	torsh_counters_destroy(&sqlite->counters);
}

/* A wait is reported after the call that waited, with the call's correlation id. */
void torsh_sqlite_calls_see(struct sqlite *sqlite, const struct recorded_process *process,
			    const struct timeline_event *event, const struct span *innermost)
{
	size_t index = (size_t)(torsh_sqlite_known(sqlite, process) - sqlite->known);
	struct process_calls *calls = &sqlite->calls[index];
	const struct event *at = &event->event;
	uint32_t operator_label = 0;

	torsh_counters_see(&sqlite->counters, process, at);
	if (at->id == EVENT_DEVICE_WAIT &&
	    !torsh_call_window_find(&calls->labels, at->device_wait.correlation, &operator_label))
		operator_label = 0;
	if (torsh_trace_has(sqlite->trace, event->at_ns))
		torsh_device_calls_add(&calls->all, process, at, operator_label);
	if (at->id == EVENT_DEVICE_CALL || at->id == EVENT_LAUNCH)
		torsh_call_window_add(&calls->labels,
				      at->id == EVENT_LAUNCH ? at->launch.correlation
							     : at->device_call.correlation,
				      innermost ? innermost->name : 0);
}

static void insert_time(struct database *database, uint32_t process, const struct device_time *row)
{
	if (row->kind == TIME_OVERHEAD)
		return;
	torsh_database_fill(database, row->kind == TIME_CALL ? INSERT_CALL : INSERT_WAIT);
	torsh_database_number(database, process);
	torsh_database_text(database, row->name);
	if (row->kind == TIME_WAIT)
		torsh_database_text(database, row->operator_name);
	torsh_database_number(database, row->calls);
	if (row->kind == TIME_CALL)
		torsh_database_number(database, row->failed);
	torsh_database_number(database, row->total_ns);
	torsh_database_number(database, row->max_ns);
	torsh_database_insert(database);
}

static void insert_counters(struct database *database, const struct counter_process *counted)
{
	for (size_t i = 0; i < counted->n_kernels; i++) {
		const struct counter_kernel *kernel = &counted->kernels[i];

		for (uint32_t k = 0; k < COUNTERS_A_DEVICE; k++) {
			const struct counter_metric *metric =
				torsh_counters_metric(counted, kernel->device, k);

			if (!metric->name || !isfinite(kernel->values[k]))
				continue;
			torsh_database_fill(database, INSERT_KERNEL_COUNTER);
			torsh_database_number(database, counted->process->number);
			torsh_database_number(database, kernel->device);
			torsh_database_known(database, kernel->correlation, kernel->correlation);
			torsh_database_text(database, metric->name);
			torsh_database_text(database, metric->unit);
			torsh_database_real(database, true, kernel->values[k]);
			torsh_database_insert(database);
		}
	}
}

void torsh_sqlite_calls_insert(struct sqlite *sqlite)
{
	for (size_t i = 0; i < sqlite->trace->n_processes; i++) {
		struct device_calls *all = &sqlite->calls[i].all;

		torsh_device_calls_finish(all);
		for (size_t k = 0; k < all->n_times; k++)
			insert_time(&sqlite->database, sqlite->trace->processes[i]->number,
				    &all->times[k]);
	}
	for (size_t i = 0; i < sqlite->counters.n; i++)
		insert_counters(&sqlite->database, &sqlite->counters.processes[i]);
}
