/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `torsh report --json`. */
#include "tools/report/overview.h"

#include "tools/analysis/findings_json.h"
#include "tools/analysis/host/gc_figures.h"
#include "tools/report/counters/traffic_report.h"
#include "tools/report/parts.h"
#include "tools/report/screen/screen_path.h"
#include "tools/report/screen/screen_stacks.h"

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
		sums.is_sampled |= process->heap.sampled_every != 0;
		for (size_t k = 0; k < PROFILE_SIZE_CLASSES; k++)
			sums.size_blocks[k] += process->heap.size_blocks[k];
		sums.waited_ns += process->waited_ns;
		sums.ring_bytes += process->ring_bytes_read;
		sums.delivered += process->delivered;
		sums.n_threads += process->n_threads;
	}
	return sums;
}

const struct metrics_process *torsh_overview_metrics(const struct overview *overview,
						     const struct recorded_process *process)
{
	const struct metrics *metrics = overview->analysis.metrics;

	for (size_t i = 0; metrics && i < metrics->n; i++) {
		if (metrics->processes[i].process == process)
			return &metrics->processes[i];
	}
	return NULL;
}

static void emit_sites(struct json_writer *json, const char *name,
		       const struct allocation_sites *sites, size_t n)
{
	torsh_json_begin_array(json, name);
	for (size_t i = 0; i < n; i++)
		torsh_parts_emit_site(json, &sites->items[i]);
	torsh_json_end_array(json);
}

static void emit_processes(struct json_writer *json, const struct overview *overview)
{
	static const char *const measured[] = {
		"leaked_bytes", "leaked_blocks",  "at_exec_bytes", "at_exec_blocks",
		"peak_bytes",	"rss_peak_bytes", "python_gc",	   NULL};

	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < overview->n_processes; i++) {
		const struct recorded_process *process = overview->processes[i];

		torsh_parts_begin_process(json, process);
		torsh_parts_emit_leaks(json, &overview->leaks.processes[i],
				       torsh_recording_has_heap(process));
		torsh_json_put_known(json, "peak_bytes", torsh_recording_has_heap(process),
				     process->heap.peak_bytes);
		torsh_json_put_known(json, "rss_peak_bytes", process->has_rss_peak,
				     process->rss_peak_bytes);
		torsh_gc_json(json, torsh_overview_metrics(overview, process));
		torsh_json_end_object(json);
	}
	torsh_parts_emit_unfollowed(json, overview->unfollowed, overview->n_unfollowed, measured);
	torsh_json_end_array(json);
}

static void emit_heap(struct json_writer *json, const struct overview_sums *sums)
{
	torsh_json_begin_object(json, "heap");
	torsh_json_put_u64(json, "allocations", sums->allocs);
	torsh_json_put_u64(json, "frees", sums->frees);
	torsh_json_put_u64(json, "reallocations", sums->reallocs);
	torsh_json_put_u64(json, "allocated_bytes", sums->alloc_bytes);
	torsh_json_put_known(json, "temporary", !sums->is_sampled, sums->temporary);
	torsh_json_begin_array(json, "sizes");
	for (unsigned i = 0; i < PROFILE_SIZE_CLASSES; i++) {
		if (!sums->size_blocks[i])
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "from", i ? UINT64_C(1) << (i - 1) : 0);
		torsh_json_put_u64(json, "to", i ? (UINT64_C(1) << (i - 1)) * 2 - 1 : 0);
		torsh_json_put_u64(json, "blocks", sums->size_blocks[i]);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void emit_threads(struct json_writer *json, const struct overview *overview)
{
	torsh_json_begin_array(json, "threads");
	for (size_t i = 0; i < overview->n_processes; i++) {
		for (size_t k = 0; k < overview->processes[i]->n_threads; k++) {
			const struct recorded_thread *thread = &overview->processes[i]->threads[k];

			if (!thread->is_known)
				continue;
			torsh_json_begin_object(json, NULL);
			torsh_json_put_u64(json, "pid", overview->processes[i]->pid);
			torsh_json_put_u64(json, "tid", thread->tid);
			torsh_json_put_text(json, "name", thread->name);
			torsh_json_put_u64(json, "start_ns", thread->start_ns);
			torsh_json_put_known(json, "end_ns", thread->end_ns, thread->end_ns);
			torsh_json_put_u64(json, "allocations", thread->allocs);
			torsh_json_put_u64(json, "allocated_bytes", thread->alloc_bytes);
			torsh_json_put_u64(json, "frees", thread->frees);
			torsh_json_put_u64(json, "dropped", thread->dropped);
			torsh_json_end_object(json);
		}
	}
	torsh_json_end_array(json);
}

static void emit_leaks(struct json_writer *json, const struct overview *overview)
{
	const struct leaks *leaks = &overview->leaks;
	bool is_known = torsh_recording_has_heaps(overview->processes, overview->n_processes);

	torsh_json_begin_object(json, "leaks");
	torsh_json_put_known(json, "leaked_bytes", is_known, leaks->bytes);
	torsh_json_put_known(json, "leaked_blocks", is_known, leaks->blocks);
	torsh_json_put_u64(json, "bookkeeping_bytes", leaks->bookkeeping_bytes);
	torsh_json_put_u64(json, "bookkeeping_blocks", leaks->bookkeeping_blocks);
	torsh_json_put_u64(json, "suppressed_bytes", leaks->suppressed_bytes);
	torsh_json_put_u64(json, "suppressed_blocks", leaks->suppressed_blocks);
	torsh_json_put_u64(json, "at_exec_bytes", leaks->exec_bytes);
	torsh_json_put_u64(json, "at_exec_blocks", leaks->exec_blocks);
	torsh_parts_emit_helpers(json, &leaks->helpers);
	emit_sites(json, "leaks", &leaks->found, overview->n_leaks);
	torsh_parts_emit_omitted(json, &leaks->found, overview->n_leaks);
	torsh_json_end_object(json);
}

static void emit_peak(struct json_writer *json, const struct overview *overview)
{
	const struct peak *peak = &overview->highest;
	const struct recorded_process *process = peak->process;

	torsh_json_begin_object(json, "peak");
	torsh_json_put_text(json, "of", process ? "process" : "session");
	torsh_json_put_known(json, "pid", process, process ? process->pid : 0);
	torsh_json_put_known(json, "peak_bytes", peak->is_known, peak->bytes);
	torsh_json_put_known(json, "peak_blocks", peak->is_known, peak->blocks);
	torsh_json_put_known(json, "at_ns", peak->is_known, peak->at_ns);
	torsh_json_put_known(json, "rss_peak_bytes", process && process->has_rss_peak,
			     process ? process->rss_peak_bytes : 0);
	torsh_json_put_known(json, "mapped_peak_bytes", process && process->vm.is_there,
			     process ? process->vm.peak_bytes : 0);
	emit_sites(json, "holders", &overview->peak, overview->n_peak);
	torsh_parts_emit_omitted(json, &overview->peak, overview->n_peak);
	torsh_json_end_object(json);
}

static void emit_writer(struct json_writer *json, const struct profile_writer *writer)
{
	bool has_blocks = writer->live_blocks != 0;

	if (!writer->is_known) {
		torsh_json_put_null(json, "writer");
		return;
	}
	torsh_json_begin_object(json, "writer");
	torsh_json_put_known(json, "resident_bytes", writer->has_resident, writer->resident_bytes);
	torsh_json_put_u64(json, "live_blocks", writer->live_blocks);
	torsh_json_put_u64(json, "live_blocks_bytes", writer->live_bytes);
	if (has_blocks)
		torsh_json_put_double(json, "bytes_per_block",
				      (double)writer->live_bytes / (double)writer->live_blocks);
	else
		torsh_json_put_null(json, "bytes_per_block");
	torsh_json_put_u64(json, "stacks", writer->stacks);
	torsh_json_end_object(json);
}

static void emit_analysis(struct json_writer *json, const struct overview *overview)
{
	if (!overview->has_timeline) {
		torsh_json_put_null(json, "inefficiencies");
		torsh_json_put_null(json, "rules");
		return;
	}
	torsh_findings_json(json, &overview->analysis, overview->symbols);
	torsh_rules_json(json, &overview->analysis);
}

void torsh_overview_json(const struct overview *overview)
{
	struct overview_sums sums = torsh_overview_sum(overview);
	struct recorded_process *const *processes = overview->processes;
	size_t n = overview->n_processes;
	struct traffic_report traffic;
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_u64(&json, "pid", processes[0]->pid);
	emit_processes(&json, overview);
	torsh_parts_emit_events(&json, processes, n);
	emit_heap(&json, &sums);
	emit_leaks(&json, overview);
	emit_peak(&json, overview);
	torsh_overview_devices_json(&json, &overview->devices);
	torsh_traffic_report_make(&traffic, overview->recording, processes, n);
	torsh_traffic_report_emit(&json, &traffic);
	emit_sites(&json, "temporary", &overview->temporary, overview->n_temporary);
	torsh_path_json(&json, overview);
	emit_analysis(&json, overview);
	emit_threads(&json, overview);
	torsh_json_put_u64(&json, "waited_ns", sums.waited_ns);
	emit_writer(&json, &overview->recording->writer);
	torsh_stacks_json(&json, &overview->recording->thread_stacks);
	torsh_parts_emit_recording(&json, overview->recording);
	torsh_parts_emit_notes(&json, processes, n);
	torsh_parts_emit_counters(&json, processes, n);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}
