/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `torsh report --json`. */
#include "tools/report/overview.h"

#include "tools/analysis/findings_json.h"
#include "tools/report/parts.h"

struct overview_sums torsh_overview_sum(const struct overview *overview)
{
	struct overview_sums sums = {0};

	for (size_t i = 0; i < overview->n_processes; i++) {
		const struct recorded_process *process = overview->processes[i];

		sums.allocs += process->heap.allocs;
		sums.frees += process->heap.frees;
		sums.reallocs += process->heap.reallocs;
		sums.alloc_bytes += process->heap.alloc_bytes;
		sums.temporary += process->heap.temporary;
		for (size_t k = 0; k < PROFILE_SIZE_CLASSES; k++)
			sums.size_blocks[k] += process->heap.size_blocks[k];
		sums.waited_ns += process->waited_ns;
		sums.ring_bytes += process->ring_bytes_read;
		sums.delivered += process->delivered;
		sums.n_threads += process->n_threads;
	}
	return sums;
}

static cJSON *known_or_null(bool is_known, uint64_t number)
{
	return is_known ? torsh_json_u64(number) : torsh_json_text(NULL);
}

static cJSON *make_sites(const struct allocation_sites *sites, size_t n)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < n; i++)
		torsh_json_add(list, torsh_parts_site(&sites->items[i], true));
	return list;
}

static cJSON *make_processes(const struct overview *overview)
{
	static const char *const measured[] = {"leaked_bytes",
					       "leaked_blocks",
					       "at_exec_bytes",
					       "at_exec_blocks",
					       "peak_bytes",
					       "rss_peak_bytes",
					       NULL};
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < overview->n_processes; i++) {
		const struct recorded_process *process = overview->processes[i];
		cJSON *object = torsh_parts_process(process);

		torsh_parts_set_leaks(object, &overview->leaks.processes[i],
				      torsh_recording_has_heap(process));
		torsh_json_set(
			object, "peak_bytes",
			known_or_null(torsh_recording_has_heap(process), process->heap.peak_bytes));
		torsh_json_set(object, "rss_peak_bytes",
			       process->has_rss_peak ? torsh_json_u64(process->rss_peak_bytes)
						     : torsh_json_text(NULL));
		torsh_json_add(list, object);
	}
	torsh_parts_add_unfollowed(list, overview->unfollowed, overview->n_unfollowed, measured);
	return list;
}

static cJSON *make_heap(const struct overview_sums *sums)
{
	cJSON *object = torsh_json_object(), *sizes = torsh_json_list();

	torsh_json_set(object, "allocations", torsh_json_u64(sums->allocs));
	torsh_json_set(object, "frees", torsh_json_u64(sums->frees));
	torsh_json_set(object, "reallocations", torsh_json_u64(sums->reallocs));
	torsh_json_set(object, "allocated_bytes", torsh_json_u64(sums->alloc_bytes));
	torsh_json_set(object, "temporary", torsh_json_u64(sums->temporary));
	for (unsigned i = 0; i < PROFILE_SIZE_CLASSES; i++) {
		cJSON *size;

		if (!sums->size_blocks[i])
			continue;
		size = torsh_json_object();
		torsh_json_set(size, "from", torsh_json_u64(i ? UINT64_C(1) << (i - 1) : 0));
		torsh_json_set(size, "to",
			       torsh_json_u64(i ? (UINT64_C(1) << (i - 1)) * 2 - 1 : 0));
		torsh_json_set(size, "blocks", torsh_json_u64(sums->size_blocks[i]));
		torsh_json_add(sizes, size);
	}
	torsh_json_set(object, "sizes", sizes);
	return object;
}

static cJSON *make_threads(const struct overview *overview)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < overview->n_processes; i++) {
		for (size_t k = 0; k < overview->processes[i]->n_threads; k++) {
			const struct recorded_thread *thread = &overview->processes[i]->threads[k];
			cJSON *object;

			if (!thread->is_known)
				continue;
			object = torsh_json_object();
			torsh_json_set(object, "pid", torsh_json_u64(overview->processes[i]->pid));
			torsh_json_set(object, "tid", torsh_json_u64(thread->tid));
			torsh_json_set(object, "name", torsh_json_text(thread->name));
			torsh_json_set(object, "start_ns", torsh_json_u64(thread->start_ns));
			torsh_json_set(object, "end_ns",
				       thread->end_ns ? torsh_json_u64(thread->end_ns)
						      : torsh_json_text(NULL));
			torsh_json_set(object, "allocations", torsh_json_u64(thread->allocs));
			torsh_json_set(object, "allocated_bytes",
				       torsh_json_u64(thread->alloc_bytes));
			torsh_json_set(object, "frees", torsh_json_u64(thread->frees));
			torsh_json_set(object, "dropped", torsh_json_u64(thread->dropped));
			torsh_json_add(list, object);
		}
	}
	return list;
}

static cJSON *make_leaks(const struct overview *overview)
{
	const struct leaks *leaks = &overview->leaks;
	bool is_known = torsh_recording_has_heaps(overview->processes, overview->n_processes);
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "leaked_bytes", known_or_null(is_known, leaks->bytes));
	torsh_json_set(object, "leaked_blocks", known_or_null(is_known, leaks->blocks));
	torsh_json_set(object, "bookkeeping_bytes", torsh_json_u64(leaks->bookkeeping_bytes));
	torsh_json_set(object, "bookkeeping_blocks", torsh_json_u64(leaks->bookkeeping_blocks));
	torsh_json_set(object, "suppressed_bytes", torsh_json_u64(leaks->suppressed_bytes));
	torsh_json_set(object, "suppressed_blocks", torsh_json_u64(leaks->suppressed_blocks));
	torsh_json_set(object, "at_exec_bytes", torsh_json_u64(leaks->exec_bytes));
	torsh_json_set(object, "at_exec_blocks", torsh_json_u64(leaks->exec_blocks));
	torsh_json_set(object, "leaks", make_sites(&leaks->found, overview->n_leaks));
	torsh_json_set(object, "omitted", torsh_parts_omitted(&leaks->found, overview->n_leaks));
	return object;
}

static cJSON *make_peak(const struct overview *overview)
{
	const struct peak *peak = &overview->highest;
	const struct recorded_process *process = peak->process;
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "of", torsh_json_text(process ? "process" : "session"));
	torsh_json_set(object, "pid", known_or_null(process, process ? process->pid : 0));
	torsh_json_set(object, "peak_bytes", known_or_null(peak->is_known, peak->bytes));
	torsh_json_set(object, "peak_blocks", known_or_null(peak->is_known, peak->blocks));
	torsh_json_set(object, "at_ns", known_or_null(peak->is_known, peak->at_ns));
	torsh_json_set(object, "rss_peak_bytes",
		       known_or_null(process && process->has_rss_peak,
				     process ? process->rss_peak_bytes : 0));
	torsh_json_set(object, "mapped_peak_bytes",
		       known_or_null(process && process->vm.is_there,
				     process ? process->vm.peak_bytes : 0));
	torsh_json_set(object, "holders", make_sites(&overview->peak, overview->n_peak));
	torsh_json_set(object, "omitted", torsh_parts_omitted(&overview->peak, overview->n_peak));
	return object;
}

static cJSON *make_writer(const struct profile_writer *writer)
{
	bool has_blocks = writer->live_blocks != 0;
	cJSON *object;

	if (!writer->is_known)
		return torsh_json_text(NULL);
	object = torsh_json_object();
	torsh_json_set(object, "resident_bytes",
		       known_or_null(writer->has_resident, writer->resident_bytes));
	torsh_json_set(object, "live_blocks", torsh_json_u64(writer->live_blocks));
	torsh_json_set(object, "live_blocks_bytes", torsh_json_u64(writer->live_bytes));
	torsh_json_set(object, "bytes_per_block",
		       has_blocks ? torsh_json_double((double)writer->live_bytes /
						      (double)writer->live_blocks)
				  : torsh_json_text(NULL));
	torsh_json_set(object, "stacks", torsh_json_u64(writer->stacks));
	return object;
}

void torsh_overview_json(const struct overview *overview)
{
	struct overview_sums sums = torsh_overview_sum(overview);
	struct recorded_process *const *processes = overview->processes;
	size_t n = overview->n_processes;
	struct json json;

	torsh_json_begin(&json, stdout);
	torsh_json_member(&json, "version", torsh_json_u64(1));
	torsh_json_member(&json, "pid", torsh_json_u64(processes[0]->pid));
	torsh_json_member(&json, "processes", make_processes(overview));
	torsh_json_member(&json, "events", torsh_parts_events(processes, n));
	torsh_json_member(&json, "heap", make_heap(&sums));
	torsh_json_member(&json, "leaks", make_leaks(overview));
	torsh_json_member(&json, "peak", make_peak(overview));
	torsh_json_member(&json, "devices", torsh_overview_devices_json(&overview->devices));
	torsh_json_member(&json, "temporary",
			  make_sites(&overview->temporary, overview->n_temporary));
	torsh_json_member(&json, "inefficiencies",
			  overview->has_timeline
				  ? torsh_findings_json(&overview->analysis, overview->symbols)
				  : torsh_json_text(NULL));
	torsh_json_member(&json, "rules",
			  overview->has_timeline ? torsh_rules_json(&overview->analysis)
						 : torsh_json_text(NULL));
	torsh_json_member(&json, "threads", make_threads(overview));
	torsh_json_member(&json, "waited_ns", torsh_json_u64(sums.waited_ns));
	torsh_json_member(&json, "writer", make_writer(&overview->recording->writer));
	torsh_json_member(&json, "recording", torsh_parts_recording(overview->recording));
	torsh_json_member(&json, "notes", torsh_parts_notes(processes, n));
	torsh_json_member(&json, "counters", torsh_parts_counters(processes, n));
	torsh_json_end(&json);
}
