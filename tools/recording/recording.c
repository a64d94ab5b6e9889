/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Queries of a recording. */
#include "tools/recording/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/die.h"
#include "tools/recording/load_parts.h"

struct recording *torsh_recording_new(const char *path)
{
	struct recording *recording = torsh_need(calloc(1, sizeof(*recording)));

	recording->path = torsh_need(strdup(path));
	return recording;
}

static void free_texts(char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	free(texts);
}

struct recorded_tables *torsh_tables_new(void)
{
	struct recorded_tables *tables = torsh_need(calloc(1, sizeof(*tables)));

	tables->n_users = 1;
	return tables;
}

void torsh_tables_leave(struct recorded_tables *tables)
{
	if (--tables->n_users)
		return;
	for (size_t i = 0; i < tables->n_modules; i++) {
		free(tables->modules[i].path);
		free(tables->modules[i].build_id);
	}
	free(tables->modules);
	for (size_t i = 0; i < tables->n_functions; i++) {
		free(tables->functions[i].name);
		free(tables->functions[i].file);
	}
	free(tables->functions);
	free(tables->addresses);
	free_texts(tables->symbols, tables->n_symbols);
	if (tables->views)
		tables->free_views(tables->views);
	free(tables->stacks);
	free(tables->is_agents);
	free(tables);
}

static void free_rows(struct recorded_rows *rows)
{
	free(rows->items);
	torsh_row_index_destroy(&rows->row_of);
}

static void destroy_process(struct recorded_process *process)
{
	free(process->program);
	free_texts(process->arguments, process->n_arguments);
	free(process->allocator);
	free(process->rank);
	torsh_identity_free(&process->identity);
	free(process->lsan_suppressions);
	free(process->not_followed);
	free(process->clock);
	free_texts(process->notes, process->n_notes);
	torsh_load_forget_losses(process);
	for (size_t i = 0; i < process->n_counters; i++)
		free(process->counters[i].name);
	free(process->counters);
	free(process->rss_peak_source);
	torsh_tables_leave(process->tables);
	free(process->shifts);
	free(process->passes);
	torsh_totals_free(&process->totals);
	free_rows(&process->session_usages);
	free_rows(&process->live);
	free(process->live_groups);
	torsh_load_forget_verdicts(&process->verdicts);
	torsh_load_forget_accounts(process);
	torsh_load_forget_census(&process->census);
	torsh_load_forget_waits(&process->waits);
	torsh_load_forget_tasks(&process->tasks);
	torsh_load_forget_library(&process->library);
	free_rows(&process->survivors);
	free_rows(&process->mappings);
	for (size_t i = 0; i < process->n_moments; i++)
		torsh_usage_list_free(&process->moments[i].usages);
	free(process->moments);
	for (size_t i = 0; i < process->n_mapped_paths; i++)
		free(process->mapped_paths[i]);
	free(process->mapped_paths);
	for (size_t i = 0; i < process->n_window_peaks; i++)
		torsh_usage_list_free(&process->window_peaks[i].usages);
	free(process->window_peaks);
	for (size_t i = 0; i < process->n_threads; i++)
		free(process->threads[i].name);
	free(process->threads);
	free(process->series);
	free(process->cpu_time.points);
	free(process->cpu_supply.points);
	free(process);
}

void torsh_recording_destroy(struct recording *recording)
{
	if (!recording)
		return;
	for (size_t i = 0; i < recording->n_processes; i++)
		destroy_process(recording->processes[i]);
	free(recording->processes);
	for (size_t i = 0; i < recording->n_unfollowed; i++)
		destroy_process(recording->unfollowed[i]);
	free(recording->unfollowed);
	torsh_load_forget_device_uses(recording);
	torsh_load_forget_memory_traffic(recording);
	torsh_recorded_stacks_free(&recording->thread_stacks);
	free_texts(recording->reasons, recording->n_reasons);
	free(recording->agent_version);
	free(recording->host);
	free(recording->record);
	free(recording->snapshot_of);
	free(recording->pauses);
	torsh_recorded_clocks_free(&recording->clocks);
	free(recording->path);
	free(recording);
}

struct recorded_process *torsh_recording_process(const struct recording *recording, uint32_t number)
{
	size_t low = 0, high = recording->n_processes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (recording->processes[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < recording->n_processes && recording->processes[low]->number == number)
		return recording->processes[low];
	return NULL;
}

size_t torsh_recording_walk(const struct recorded_process *process, uint32_t stack,
			    uint32_t *addresses, size_t n_max)
{
	size_t n = 0;

	while (stack && stack < process->tables->n_stacks) {
		const struct recorded_stack *node = &process->tables->stacks[stack];

		if (n >= n_max && node->depth)
			return n + node->depth;
		if (n < n_max)
			addresses[n] = node->address;
		n++;
		stack = node->parent;
	}
	return n;
}

void *torsh_recording_row(const struct recorded_rows *rows, uint32_t stack, size_t item_bytes)
{
	uint32_t row = torsh_row_index_find(&rows->row_of, stack);

	return row != ROW_INDEX_NONE ? (char *)rows->items + row * item_bytes : NULL;
}

static void name_end(const char *what, const struct recorded_process *process, char *out,
		     size_t n_out)
{
	if (process->has_end_code)
		snprintf(out, n_out, "%s %d", what, process->end_code);
	else
		snprintf(out, n_out, "%s", what);
}

void torsh_recording_end_name(const struct recorded_process *process, char *out, size_t n_out)
{
	switch (process->end) {
	case TORSH__PROCESS__END_KIND__EXITED:
		name_end("exit", process, out, n_out);
		break;
	case TORSH__PROCESS__END_KIND__SIGNALED:
		name_end("signal", process, out, n_out);
		break;
	case TORSH__PROCESS__END_KIND__EXECUTED:
		snprintf(out, n_out, "exec");
		break;
	case TORSH__PROCESS__END_KIND__RUNNING:
		snprintf(out, n_out, "running");
		break;
	default:
		snprintf(out, n_out, "vanished");
	}
}

bool torsh_recording_rank(const char *rank, uint32_t *number)
{
	unsigned long long value;
	char *end;

	if (!rank || *rank < '0' || *rank > '9')
		return false;
	errno = 0;
	value = strtoull(rank, &end, 10);
	*number = (uint32_t)value;
	return !errno && !*end && value <= UINT32_MAX;
}

const char *torsh_recording_heap_problem(const struct recorded_process *process)
{
	if (process->has_heap_left_out)
		return "it was not requested";
	if (process->has_counts && !process->delivered)
		return process->dropped ? "all events of the process were lost"
					: "the process sent no events";
	return process->heap.is_there ? NULL : "the recording ends before anything was known";
}

bool torsh_recording_has_heap(const struct recorded_process *process)
{
	return !torsh_recording_heap_problem(process);
}

bool torsh_recording_has_heaps(struct recorded_process *const *processes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (torsh_recording_has_heap(processes[i]))
			return true;
	}
	return false;
}

uint64_t torsh_recording_sampled_every(struct recorded_process *const *processes, size_t n)
{
	uint64_t every = 0;

	for (size_t i = 0; i < n; i++) {
		if (processes[i]->heap.sampled_every > every)
			every = processes[i]->heap.sampled_every;
	}
	return every;
}

const char *torsh_recording_program_name(const struct recorded_process *process)
{
	const char *slash = process->program ? strrchr(process->program, '/') : NULL;

	if (!process->program || !*process->program)
		return "?";
	return slash ? slash + 1 : process->program;
}

const char *torsh_recording_symbol(const struct recorded_process *process, uint32_t address)
{
	uint32_t symbol;

	if (address >= process->tables->n_addresses)
		return NULL;
	symbol = process->tables->addresses[address].symbol;
	return symbol < process->tables->n_symbols ? process->tables->symbols[symbol] : NULL;
}

const struct recorded_function *torsh_recording_function(const struct recorded_process *process,
							 uint32_t address)
{
	const struct recorded_address *row;

	if (address >= process->tables->n_addresses)
		return NULL;
	row = &process->tables->addresses[address];
	if (row->flags != ADDRESS_PYTHON || row->module >= process->tables->n_functions ||
	    !process->tables->functions[row->module].name)
		return NULL;
	return &process->tables->functions[row->module];
}

bool torsh_recording_has_same_code(const struct recorded_process *a,
				   const struct recorded_process *b)
{
	return a == b || (a->tables == b->tables && !a->n_shifts && !b->n_shifts);
}

uint64_t torsh_recording_ip(const struct recorded_process *process, uint32_t address)
{
	const struct recorded_address *row = &process->tables->addresses[address];

	if (row->flags == ADDRESS_PYTHON || row->module >= process->n_shifts)
		return row->ip;
	return row->ip + process->shifts[row->module];
}

const struct recorded_module *torsh_recording_module(const struct recorded_process *process,
						     uint32_t address)
{
	uint32_t module;

	if (address >= process->tables->n_addresses ||
	    process->tables->addresses[address].flags == ADDRESS_PYTHON)
		return NULL;
	module = process->tables->addresses[address].module;
	if (module >= process->tables->n_modules || !process->tables->modules[module].path ||
	    !*process->tables->modules[module].path)
		return NULL;
	return &process->tables->modules[module];
}
