/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Chunks into a profile's tables: one function for each message of tools/store/recording.proto. Here are those of the session,
 * of processes, and the end.
 */
#include "tools/recording/load_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/store/recording_format.h"

#define PROCESSES_MAX (1u << 20) /* a file that says more is not believed */

void torsh_apply_text(char **text, const char *value)
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

void *torsh_apply_room(void *items, size_t n, size_t *n_room, size_t item_bytes)
{
	size_t n_new = *n_room ? *n_room : 64;

	if (n <= *n_room)
		return items;
	while (n_new < n)
		n_new *= 2;
	items = torsh_need_items(items, *n_room, n_new, item_bytes);
	*n_room = n_new;
	return items;
}

bool torsh_apply_can_reach(struct profile *profile, size_t n, size_t first, size_t item_bytes)
{
	uint64_t gap = first > n ? (uint64_t)(first - n) * item_bytes : 0;

	if (gap > GAPS_MAX_BYTES - profile->gap_bytes) {
		profile->n_bad_rows++;
		return false;
	}
	profile->gap_bytes += gap;
	return true;
}

/* The one with that number in a list in their order; made when it is new. */
static struct profile_process *find_in(struct profile *profile, struct profile_process ***list, size_t *n,
				       uint32_t number)
{
	struct profile_process *process;
	size_t i = *n;

	while (i > 0 && (*list)[i - 1]->number > number)
		i--;
	if (i > 0 && (*list)[i - 1]->number == number)
		return (*list)[i - 1];
	profile->moved_bytes += (*n - i) * sizeof(process);
	if (*n >= PROCESSES_MAX || profile->moved_bytes > MOVES_MAX_BYTES) {
		profile->n_bad_rows++;
		return NULL;
	}
	process = torsh_need(calloc(1, sizeof(*process)));
	process->number = number;
	if ((*n & (*n - 1)) == 0)
		*list = torsh_need_items(*list, *n, *n ? *n * 2 : 1, sizeof(process));
	memmove(*list + i + 1, *list + i, (*n - i) * sizeof(process));
	(*list)[i] = process;
	++*n;
	return process;
}

static void apply_pauses(struct profile *profile, const Torsh__Session *row)
{
	if (row->n_resumed_ns > row->n_paused_ns) {
		profile->n_bad_rows++;
		return;
	}
	profile->pauses =
		torsh_need_items(profile->pauses, profile->n_pauses, row->n_paused_ns, sizeof(*profile->pauses));
	profile->n_pauses = row->n_paused_ns;
	for (size_t i = 0; i < profile->n_pauses; i++) {
		bool has_end = i < row->n_resumed_ns;

		profile->pauses[i] = (struct profile_pause){
			.from_ns = row->paused_ns[i],
			.until_ns = has_end ? row->resumed_ns[i] : 0,
			.lasts = !has_end,
		};
	}
}

struct profile_process *torsh_apply_process_of(struct profile *profile, uint32_t number)
{
	struct profile_process *process = torsh_profile_process(profile, number);

	return process ? process : find_in(profile, &profile->processes, &profile->n_processes, number);
}

static int apply_session(struct profile *profile, const Torsh__Session *row)
{
	if (row->has_format && (row->format < RECORDING_FORMAT_OLDEST || row->format > RECORDING_FORMAT))
		return -EPROTO;
	profile->has_session = true;
	profile->format = row->format;
	torsh_apply_text(&profile->agent_version, row->agent_version);
	torsh_apply_text(&profile->host, row->host);
	torsh_apply_text(&profile->record, row->record);
	profile->start_realtime_ns = row->start_realtime_ns;
	profile->writer_pid = row->writer_pid;
	torsh_apply_text(&profile->snapshot_of, row->recording);
	profile->snapshot_ns = row->taken_ns;
	profile->without_flops = row->without_flops;
	profile->ends_with_process_1 = row->ends_with_process_1;
	apply_pauses(profile, row);
	return 0;
}

/* 0 where the version that recorded it knew none of that name. */
static uint64_t counter_of(const struct profile_process *process, const char *name)
{
	for (size_t i = 0; i < process->n_counters; i++) {
		if (strcmp(process->counters[i].name, name) == 0)
			return process->counters[i].value;
	}
	return 0;
}

static void apply_counters(struct profile_process *process, Torsh__Counter **counters, size_t n)
{
	for (size_t i = 0; i < process->n_counters; i++)
		free(process->counters[i].name);
	process->counters = torsh_need_items(process->counters, process->n_counters, n, sizeof(*process->counters));
	for (size_t i = 0; i < n; i++) {
		process->counters[i].name = torsh_need(strdup(counters[i]->name ? counters[i]->name : ""));
		process->counters[i].value = counters[i]->value;
	}
	process->n_counters = n;
	process->has_memory_left_out = counter_of(process, "memory_left_out") != 0;
	process->has_heap_left_out = counter_of(process, "heap_left_out") != 0;
}

static void take_process(struct profile_process *process, const Torsh__Process *row)
{
	process->pid = row->pid;
	process->parent_pid = row->parent_pid;
	process->forked_from = row->forked_from;
	process->executed_from = row->executed_from;
	torsh_apply_text(&process->program, row->program);
	set_texts(&process->arguments, &process->n_arguments, row->arguments, row->n_arguments);
	process->start_ns = row->start_ns;
	process->has_end_ns = row->has_end_ns;
	process->end_ns = row->end_ns;
	process->end = row->end;
	process->has_end_code = row->has_end_code;
	process->end_code = row->end_code;
	torsh_apply_text(&process->allocator, row->allocator);
	torsh_apply_text(&process->rank, row->rank);
	torsh_apply_text(&process->lsan_suppressions, row->lsan_suppressions);
	torsh_apply_text(&process->clock, row->clock);
	set_texts(&process->notes, &process->n_notes, row->notes, row->n_notes);
	apply_counters(process, row->counters, row->n_counters);
	process->has_counts = row->has_produced;
	process->produced = row->produced;
	process->delivered = row->delivered;
	process->dropped = row->dropped;
	process->uncommitted = row->uncommitted;
	torsh_apply_losses(process, row);
	process->has_rss_peak = row->has_rss_peak_bytes;
	process->rss_peak_bytes = row->rss_peak_bytes;
	torsh_apply_text(&process->rss_peak_source, row->rss_peak_source);
	process->ring_bytes_read = row->ring_bytes_read;
	process->waited_ns = row->waited_ns;
}

static void apply_process(struct profile *profile, const Torsh__Process *row)
{
	struct profile_process *process = torsh_apply_process_of(profile, row->process);

	if (process)
		take_process(process, row);
}

static void apply_unfollowed(struct profile *profile, const Torsh__Unfollowed *row)
{
	struct profile_process *process;

	if (!row->process) {
		profile->n_bad_rows++;
		return;
	}
	process = find_in(profile, &profile->unfollowed, &profile->n_unfollowed, row->process->process);
	if (!process)
		return;
	take_process(process, row->process);
	torsh_apply_text(&process->not_followed, row->reason ? row->reason : "");
}

static void apply_end(struct profile *profile, const Torsh__End *end)
{
	profile->has_end = true;
	profile->is_complete = end->complete;
	profile->end_ns = end->at_ns;
	set_texts(&profile->reasons, &profile->n_reasons, end->reasons, end->n_reasons);
}

/* A checkpoint's may lie behind the end's, which has the most of all. */
static void apply_writer(struct profile *profile, const Torsh__Writer *row)
{
	if (row->resident_bytes < profile->writer.resident_bytes)
		return;
	profile->writer = (struct profile_writer){
		.is_known = true,
		.has_resident = row->has_resident_bytes,
		.resident_bytes = row->resident_bytes,
		.live_blocks = row->live_blocks,
		.live_bytes = row->live_bytes,
		.stacks = row->stacks,
	};
}

int torsh_profile_apply(struct profile *profile, const Torsh__Chunk *chunk)
{
	int rc = chunk->session ? apply_session(profile, chunk->session) : 0;

	if (rc < 0)
		return rc;
#define APPLY_ALL(field, function)                    \
	for (size_t i = 0; i < chunk->n_##field; i++) \
		function(profile, chunk->field[i]);
	APPLY_ALL(process, apply_process)
	APPLY_ALL(unfollowed, apply_unfollowed)
	APPLY_ALL(modules, torsh_apply_modules)
	APPLY_ALL(functions, torsh_apply_functions)
	APPLY_ALL(addresses, torsh_apply_addresses)
	APPLY_ALL(symbols, torsh_apply_symbols)
	APPLY_ALL(stacks, torsh_apply_stacks)
	APPLY_ALL(stack_totals, torsh_apply_totals)
	APPLY_ALL(heap, torsh_apply_heap)
	APPLY_ALL(live, torsh_apply_live)
	APPLY_ALL(growth, torsh_apply_growth)
	APPLY_ALL(mappings, torsh_apply_mappings)
	APPLY_ALL(threads, torsh_apply_threads)
	APPLY_ALL(series, torsh_apply_series)
	APPLY_ALL(joint, torsh_apply_joint)
#undef APPLY_ALL
	if (chunk->checkpoint) {
		profile->has_known = true;
		profile->known_ns = chunk->checkpoint->at_ns;
	}
	if (chunk->writer)
		apply_writer(profile, chunk->writer);
	if (chunk->end)
		apply_end(profile, chunk->end);
	return 0;
}
