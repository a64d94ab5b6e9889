/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Loads chunks into a recording's tables: one function for each message of
 * tools/store/recording.proto. This file has those of the session, of processes, and the end.
 */
#include "tools/recording/load_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/store/chunk_members.h"
#include "tools/store/recording_format.h"

#define PROCESSES_MAX (1u << 20) /* a file with more is rejected as damaged */

void torsh_load_text(char **text, const char *value)
{
	if (!value)
		return;
	free(*text);
	*text = torsh_need(strdup(value));
}

static void set_texts(char ***texts, size_t *n, char **values, size_t n_values)
{
	for (size_t i = 0; i < *n; i++)
		free((*texts)[i]);
	*texts = torsh_need_items(*texts, *n, n_values, sizeof(**texts));
	for (size_t i = 0; i < n_values; i++)
		(*texts)[i] = torsh_need(strdup(values[i]));
	*n = n_values;
}

bool torsh_load_can_reach(struct recording *recording, size_t n, size_t first, size_t item_bytes)
{
	uint64_t gap = first > n ? (uint64_t)(first - n) * item_bytes : 0;

	if (gap > GAPS_MAX_BYTES - recording->gap_bytes) {
		recording->n_bad_rows++;
		return false;
	}
	recording->gap_bytes += gap;
	return true;
}

/* Returns the process with that number in an ordered list; creates it if it is new. */
static struct recorded_process *find_in(struct recording *recording,
					struct recorded_process ***list, size_t *n, uint32_t number)
{
	struct recorded_process *process;
	size_t i = *n;

	while (i > 0 && (*list)[i - 1]->number > number)
		i--;
	if (i > 0 && (*list)[i - 1]->number == number)
		return (*list)[i - 1];
	recording->moved_bytes += (*n - i) * sizeof(process);
	if (*n >= PROCESSES_MAX || recording->moved_bytes > MOVES_MAX_BYTES) {
		recording->n_bad_rows++;
		return NULL;
	}
	process = torsh_need(calloc(1, sizeof(*process)));
	process->number = number;
	process->tables = torsh_tables_new();
	if ((*n & (*n - 1)) == 0)
		*list = torsh_need_items(*list, *n, *n ? *n * 2 : 1, sizeof(process));
	memmove(*list + i + 1, *list + i, (*n - i) * sizeof(process));
	(*list)[i] = process;
	++*n;
	return process;
}

static void load_pauses(struct recording *recording, const Torsh__Session *row)
{
	if (row->n_resumed_ns > row->n_paused_ns) {
		recording->n_bad_rows++;
		return;
	}
	recording->pauses = torsh_need_items(recording->pauses, recording->n_pauses,
					     row->n_paused_ns, sizeof(*recording->pauses));
	recording->n_pauses = row->n_paused_ns;
	for (size_t i = 0; i < recording->n_pauses; i++) {
		bool has_end = i < row->n_resumed_ns;

		recording->pauses[i] = (struct recorded_pause){
			.from_ns = row->paused_ns[i],
			.until_ns = has_end ? row->resumed_ns[i] : 0,
			.lasts = !has_end,
		};
	}
}

struct recorded_process *torsh_load_process_of(struct recording *recording, uint32_t number)
{
	struct recorded_process *process = torsh_recording_process(recording, number);

	return process ? process
		       : find_in(recording, &recording->processes, &recording->n_processes, number);
}

static int load_session(struct recording *recording, const Torsh__Session *row)
{
	if (row->has_format &&
	    (row->format < RECORDING_FORMAT_OLDEST || row->format > RECORDING_FORMAT))
		return -EPROTO;
	recording->has_session = true;
	recording->format = row->format;
	torsh_load_text(&recording->agent_version, row->agent_version);
	torsh_load_text(&recording->host, row->host);
	torsh_load_text(&recording->record, row->record);
	recording->start_realtime_ns = row->start_realtime_ns;
	recording->writer_pid = row->writer_pid;
	torsh_load_text(&recording->snapshot_of, row->recording);
	recording->snapshot_ns = row->taken_ns;
	recording->without_flops = row->without_flops;
	recording->ends_with_process_1 = row->ends_with_process_1;
	recording->clocks.kernel_clock = row->kernel_clock;
	recording->clocks.start_monotonic_ns = row->start_monotonic_ns;
	load_pauses(recording, row);
	return 0;
}

/* 0 if the version that recorded it has no counter of that name. */
static uint64_t counter_of(const struct recorded_process *process, const char *name)
{
	for (size_t i = 0; i < process->n_counters; i++) {
		if (strcmp(process->counters[i].name, name) == 0)
			return process->counters[i].value;
	}
	return 0;
}

static void load_counters(struct recorded_process *process, Torsh__Counter **counters, size_t n)
{
	for (size_t i = 0; i < process->n_counters; i++)
		free(process->counters[i].name);
	process->counters = torsh_need_items(process->counters, process->n_counters, n,
					     sizeof(*process->counters));
	for (size_t i = 0; i < n; i++) {
		process->counters[i].name =
			torsh_need(strdup(counters[i]->name ? counters[i]->name : ""));
		process->counters[i].value = counters[i]->value;
	}
	process->n_counters = n;
	process->has_memory_left_out = counter_of(process, "memory_left_out") != 0;
	process->has_heap_left_out = counter_of(process, "heap_left_out") != 0;
}

static void load_usage(struct recorded_usage *usage, const Torsh__Usage *row)
{
	if (!row)
		return;
	*usage = (struct recorded_usage){
		.is_there = true,
		.minor_faults = row->minor_faults,
		.major_faults = row->major_faults,
		.swap_peak_bytes = row->swap_peak_bytes,
		.n_cpus = row->cpus,
		.sampled_ns = row->sampled_ns,
		.oversubscribed_ns = row->oversubscribed_ns,
		.runnable_ns = row->runnable_ns,
		.has_cpu_wait = row->has_cpu_wait_ns,
		.cpu_wait_ns = row->cpu_wait_ns,
		.has_throttling = row->has_cpu_throttled_ns,
		.cpu_throttled_ns = row->cpu_throttled_ns,
		.cpu_throttled_periods = row->cpu_throttled_periods,
		.cpu_periods = row->cpu_periods,
		.has_cpu_stolen = row->has_cpu_stolen_ns,
		.cpu_stolen_ns = row->cpu_stolen_ns,
	};
}

static void take_process(struct recorded_process *process, const Torsh__Process *row)
{
	process->pid = row->pid;
	process->parent_pid = row->parent_pid;
	process->forked_from = row->forked_from;
	process->executed_from = row->executed_from;
	torsh_load_text(&process->program, row->program);
	set_texts(&process->arguments, &process->n_arguments, row->arguments, row->n_arguments);
	process->start_ns = row->start_ns;
	process->has_end_ns = row->has_end_ns;
	process->end_ns = row->end_ns;
	process->end = row->end;
	process->has_end_code = row->has_end_code;
	process->end_code = row->end_code;
	process->ran_exit_handlers = row->ran_exit_handlers;
	process->ended_by__exit = row->has_ran_exit_handlers && !row->ran_exit_handlers &&
				  row->end == TORSH__PROCESS__END_KIND__EXITED;
	torsh_load_text(&process->allocator, row->allocator);
	torsh_load_text(&process->rank, row->rank);
	torsh_identity_load(&process->identity, row->identity);
	torsh_load_text(&process->lsan_suppressions, row->lsan_suppressions);
	torsh_load_text(&process->clock, row->clock);
	set_texts(&process->notes, &process->n_notes, row->notes, row->n_notes);
	load_counters(process, row->counters, row->n_counters);
	process->has_counts = row->has_produced;
	process->produced = row->produced;
	process->delivered = row->delivered;
	process->dropped = row->dropped;
	process->uncommitted = row->uncommitted;
	torsh_load_losses(process, row);
	process->has_rss_peak = row->has_rss_peak_bytes;
	process->rss_peak_bytes = row->rss_peak_bytes;
	torsh_load_text(&process->rss_peak_source, row->rss_peak_source);
	process->ring_bytes_read = row->ring_bytes_read;
	process->waited_ns = row->waited_ns;
	load_usage(&process->usage, row->usage);
}

static void load_process(struct recording *recording, const Torsh__Process *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);

	if (!process)
		return;
	take_process(process, row);
	if (row->tables_of)
		torsh_load_tables_of(recording, process, row->tables_of);
}

static void load_unfollowed(struct recording *recording, const Torsh__Unfollowed *row)
{
	struct recorded_process *process;

	if (!row->process) {
		recording->n_bad_rows++;
		return;
	}
	process = find_in(recording, &recording->unfollowed, &recording->n_unfollowed,
			  row->process->process);
	if (!process)
		return;
	take_process(process, row->process);
	torsh_load_text(&process->not_followed, row->reason ? row->reason : "");
}

static void load_end(struct recording *recording, const Torsh__End *end)
{
	recording->has_end = true;
	recording->is_complete = end->complete;
	recording->end_ns = end->at_ns;
	set_texts(&recording->reasons, &recording->n_reasons, end->reasons, end->n_reasons);
}

/* A checkpoint's row may follow the end's in the file; the end's has the largest numbers. */
static void load_writer(struct recording *recording, const Torsh__Writer *row)
{
	if (row->resident_bytes < recording->writer.resident_bytes)
		return;
	recording->writer = (struct profile_writer){
		.is_known = true,
		.has_resident = row->has_resident_bytes,
		.resident_bytes = row->resident_bytes,
		.live_blocks = row->live_blocks,
		.live_bytes = row->live_bytes,
		.stacks = row->stacks,
	};
}

static void load_clock_peer(struct recording *recording, const Torsh__ClockPeer *row)
{
	if (!torsh_recorded_clocks_peer(&recording->clocks, row))
		recording->n_bad_rows++;
}

static void load_exchanges(struct recording *recording, const Torsh__ClockExchanges *row)
{
	if (!torsh_recorded_clocks_exchanges(&recording->clocks, row))
		recording->n_bad_rows++;
}

static void load_thread_stack(struct recording *recording, const Torsh__ThreadStack *row)
{
	if (!torsh_recorded_stacks_take(&recording->thread_stacks, row))
		recording->n_bad_rows++;
}

static void load_packed(struct recording *recording, const struct packed_messages *packed,
			uint32_t member,
			void (*load)(struct recording *recording, const struct packed_message *row))
{
	for (size_t i = 0; i < packed->n; i++) {
		if (packed->items[i].member == member)
			load(recording, &packed->items[i]);
	}
}

int torsh_recording_load(struct recording *recording, const Torsh__Chunk *chunk)
{
	return torsh_recording_load_packed(recording, chunk, &(struct packed_messages){0});
}

int torsh_recording_load_packed(struct recording *recording, const Torsh__Chunk *chunk,
				const struct packed_messages *packed)
{
	int rc = chunk->session ? load_session(recording, chunk->session) : 0;

	if (rc < 0)
		return rc;
#define LOAD_ALL(field, function)                     \
	for (size_t i = 0; i < chunk->n_##field; i++) \
		function(recording, chunk->field[i]);
	LOAD_ALL(process, load_process)
	LOAD_ALL(unfollowed, load_unfollowed)
	LOAD_ALL(modules, torsh_load_modules)
	LOAD_ALL(placements, torsh_load_placements)
	LOAD_ALL(functions, torsh_load_functions)
	LOAD_ALL(addresses, torsh_load_addresses)
	LOAD_ALL(symbols, torsh_load_symbols)
	LOAD_ALL(stacks, torsh_load_stacks)
	load_packed(recording, packed, CHUNK_FIELD_STACKS, torsh_load_packed_stacks);
	LOAD_ALL(stack_totals, torsh_load_totals)
	load_packed(recording, packed, CHUNK_FIELD_STACK_TOTALS, torsh_load_packed_totals);
	LOAD_ALL(heap, torsh_load_heap)
	LOAD_ALL(live, torsh_load_live)
	LOAD_ALL(verdicts, torsh_load_verdicts)
	LOAD_ALL(residency, torsh_load_residency)
	LOAD_ALL(census, torsh_load_census)
	LOAD_ALL(device_use, torsh_load_device_use)
	LOAD_ALL(memory_traffic, torsh_load_memory_traffic)
	LOAD_ALL(waits, torsh_load_waits)
	LOAD_ALL(shorter_waits, torsh_load_shorter_waits)
	LOAD_ALL(tasks, torsh_load_tasks)
	LOAD_ALL(task_names, torsh_load_task_names)
	LOAD_ALL(library_calls, torsh_load_library_calls)
	LOAD_ALL(growth, torsh_load_growth)
	LOAD_ALL(mappings, torsh_load_mappings)
	LOAD_ALL(moments, torsh_load_moments)
	LOAD_ALL(window_peak, torsh_load_window_peak)
	LOAD_ALL(threads, torsh_load_threads)
	LOAD_ALL(series, torsh_load_series)
	LOAD_ALL(cpu_time, torsh_load_cpu_time)
	LOAD_ALL(cpu_supply, torsh_load_cpu_supply)
	LOAD_ALL(joint, torsh_load_joint)
	LOAD_ALL(clock_peer, load_clock_peer)
	LOAD_ALL(clock_exchanges, load_exchanges)
	LOAD_ALL(thread_stack, load_thread_stack)
#undef LOAD_ALL
	if (chunk->checkpoint) {
		recording->has_known = true;
		recording->known_ns = chunk->checkpoint->at_ns;
	}
	if (chunk->writer)
		load_writer(recording, chunk->writer);
	if (chunk->end)
		load_end(recording, chunk->end);
	return 0;
}
