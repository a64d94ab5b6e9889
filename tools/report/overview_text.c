/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `torsh report` as text: one page, the most important first. */
#include "tools/report/overview.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/host/gc_figures.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/recording/losses.h"
#include "tools/report/findings.h"
#include "tools/report/sites/interval_text.h"
#include "tools/report/screen/screen_path.h"
#include "tools/report/screen/screen_stacks.h"
#include "tools/report/text.h"

#define PROCESSES_SHOWN 12
#define THREADS_SHOWN 8
#define FRAMES_SHOWN 6
#define BAR_CELLS 40
#define RULES_SHOWN 5

static void print_sites(const struct allocation_sites *sites, size_t n, uint64_t whole,
			bool with_pid)
{
	for (size_t i = 0; i < n; i++) {
		struct allocation_site shown = sites->items[i];
		size_t n_more = shown.n_frames > FRAMES_SHOWN ? shown.n_frames - FRAMES_SHOWN : 0;
		char text[SIZE_TEXT_BYTES];

		shown.n_frames -= n_more;
		shown.has_times = false;
		torsh_text_site(stdout, i + 1, &shown, whole, with_pid);
		if (n_more)
			printf("      ... %s\n", torsh_size_counted(n_more, "more frame", text));
	}
}

/*
 * Print "the writer took 84.5 MiB at most: 42.0 bytes for each of 2,000,000 live blocks, and
 * 13,309 nodes of the call tree". A stack is a node of it.
 */
static void print_writer(const struct profile_writer *writer)
{
	char a[SIZE_TEXT_BYTES], b[SIZE_TEXT_BYTES], c[SIZE_TEXT_BYTES];

	if (!writer->has_resident)
		return;
	printf("the writer took %s of memory at most, with %s",
	       torsh_size_human(writer->resident_bytes, a),
	       torsh_size_counted(writer->live_blocks, "live block", b));
	if (writer->live_blocks)
		printf(" (%.1f bytes each)",
		       (double)writer->live_bytes / (double)writer->live_blocks);
	printf(" and %s of the call tree\n", torsh_size_counted(writer->stacks, "node", c));
}

static void print_head(const struct overview *overview, const struct overview_sums *sums)
{
	char a[SIZE_TEXT_BYTES], b[SIZE_TEXT_BYTES], c[SIZE_TEXT_BYTES];

	torsh_text_begin(stdout, overview->recording, overview->processes, overview->n_processes,
			 PROCESSES_SHOWN);
	torsh_text_unfollowed(stdout, overview->unfollowed, overview->n_unfollowed,
			      PROCESSES_SHOWN);
	torsh_text_events(stdout, overview->processes, overview->n_processes);
	printf("heap: %s allocations of %s, %s frees\n", torsh_size_grouped(sums->allocs, a),
	       torsh_size_exact(sums->alloc_bytes, b), torsh_size_grouped(sums->frees, c));
	print_writer(&overview->recording->writer);
	torsh_text_notes(stdout, overview->recording, overview->processes, overview->n_processes);
}

static void print_leaks(const struct overview *overview)
{
	const struct leaks *leaks = &overview->leaks;
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	putchar('\n');
	if (leaks->blocks)
		torsh_text_heading(stdout, "Leaks: %s in %s not freed",
				   torsh_size_exact(leaks->bytes, bytes),
				   torsh_text_blocks(leaks->blocks, blocks));
	else if (!torsh_recording_has_heaps(overview->processes, overview->n_processes))
		torsh_text_heading(stdout, "Leaks: nothing is known about the heap");
	else if (!torsh_losses_heap_is_whole(overview->recording, overview->processes,
					     overview->n_processes))
		torsh_text_heading(stdout, "Leaks: none are among what was recorded");
	else
		torsh_text_heading(stdout, "No leaks");
	torsh_interval_text(stdout, "", leaks->bytes, leaks->blocks,
			    torsh_sites_variance(&leaks->found));
	if (leaks->alive_blocks)
		torsh_text_alive(stdout, leaks, overview->suppress);
	torsh_text_unknown_heaps(stdout, overview->processes, overview->n_processes,
				 PROCESSES_SHOWN);
	if (leaks->bookkeeping_blocks)
		printf("left out: %s in %s of the libraries' own bookkeeping\n",
		       torsh_size_exact(leaks->bookkeeping_bytes, bytes),
		       torsh_text_blocks(leaks->bookkeeping_blocks, blocks));
	if (leaks->suppressed_blocks)
		printf("suppressed: %s in %s\n", torsh_size_exact(leaks->suppressed_bytes, bytes),
		       torsh_text_blocks(leaks->suppressed_blocks, blocks));
	if (leaks->exec_blocks)
		printf("no leaks: %s in %s, alive when a process became another program\n",
		       torsh_size_exact(leaks->exec_bytes, bytes),
		       torsh_text_blocks(leaks->exec_blocks, blocks));
	print_sites(&leaks->found, overview->n_leaks, leaks->bytes, overview->n_processes > 1);
	torsh_text_helpers(stdout, &leaks->helpers);
}

static void print_peak(const struct overview *overview)
{
	const struct peak *peak = &overview->highest;
	const struct recorded_process *process = peak->process;
	uint64_t start_ns = process ? process->start_ns : 0;
	char bytes[SIZE_TEXT_BYTES], blocks[64], at[SIZE_TEXT_BYTES];

	putchar('\n');
	if (peak->is_known)
		torsh_text_heading(
			stdout, "Peak%s: %s in %s, %s after the start",
			process ? "" : " of all processes together",
			torsh_size_exact(peak->bytes, bytes),
			torsh_text_blocks(peak->blocks, blocks),
			torsh_size_duration(peak->at_ns > start_ns ? peak->at_ns - start_ns : 0,
					    at));
	else
		torsh_text_heading(stdout, "Peak: nothing is known about the heap");
	if (peak->is_known)
		torsh_interval_text(stdout, "", peak->bytes, peak->blocks,
				    torsh_peak_variance(peak, overview->recording));
	if (process && overview->n_processes > 1)
		printf("of %s (pid %" PRIu32 "), the highest of all processes\n",
		       torsh_recording_program_name(process), process->pid);
	if (process)
		torsh_text_resident(stdout, process);
	if (process && process->vm.is_there)
		printf("most address space mapped by the program: %s; %s maps, %s unmaps\n",
		       torsh_size_exact(process->vm.peak_bytes, bytes),
		       torsh_size_grouped(process->vm.maps, blocks),
		       torsh_size_grouped(process->vm.unmaps, at));
	print_sites(&overview->peak, overview->n_peak, peak->bytes, !process);
}

static void print_temporary(const struct overview *overview, const struct overview_sums *sums)
{
	char number[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];

	if (!sums->temporary)
		return;
	putchar('\n');
	torsh_text_heading(
		stdout, "Temporary: %s blocks (%s of all) were freed before the next was allocated",
		torsh_size_grouped(sums->temporary, number),
		torsh_size_percent((double)sums->temporary, (double)sums->allocs, share));
	print_sites(&overview->temporary, overview->n_temporary, 0, overview->n_processes > 1);
}

static void print_sizes(const struct overview_sums *sums)
{
	static const char bar[] = "########################################";
	uint64_t most = 0;

	for (size_t i = 0; i < PROFILE_SIZE_CLASSES; i++)
		most = sums->size_blocks[i] > most ? sums->size_blocks[i] : most;
	if (!most)
		return;
	putchar('\n');
	torsh_text_heading(stdout, "Sizes of the blocks allocated");
	for (unsigned i = 0; i < PROFILE_SIZE_CLASSES; i++) {
		char size[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES];
		int cells = (int)((double)sums->size_blocks[i] / (double)most * BAR_CELLS + 0.5);

		if (!sums->size_blocks[i])
			continue;
		printf("  %9s and more %15s  %.*s\n",
		       i ? torsh_size_human(UINT64_C(1) << (i - 1), size) : "0 B",
		       torsh_size_grouped(sums->size_blocks[i], blocks), cells, bar);
	}
}

/* Of each process that had runs of Python's collector. */
static void print_collectors(const struct overview *overview)
{
	for (size_t i = 0; i < overview->n_processes && i < PROCESSES_SHOWN; i++) {
		const struct recorded_process *process = overview->processes[i];
		const struct metrics_process *of = torsh_overview_metrics(overview, process);
		char *sentence, runs[SIZE_TEXT_BYTES], ns[SIZE_TEXT_BYTES];

		if (!of || !torsh_gc_runs(&of->gc.all))
			continue;
		putchar('\n');
		sentence = torsh_gc_sentence(of);
		torsh_text_heading(stdout,
				   "Garbage collector of Python in %s (pid %" PRIu32 "): %s",
				   torsh_recording_program_name(process), process->pid, sentence);
		free(sentence);
		for (uint32_t k = 0; k < GC_GENERATIONS; k++)
			printf("  generation %" PRIu32 "  %15s  %10s\n", k,
			       torsh_size_counted(of->gc.all.n[k], "run", runs),
			       torsh_size_duration(of->gc.all.ns[k], ns));
		printf("  %s collected in all\n",
		       torsh_size_counted(of->gc.all.collected, "object", runs));
	}
}

static int compare_threads(const void *a, const void *b)
{
	const struct recorded_thread *one = *(struct recorded_thread *const *)a;
	const struct recorded_thread *other = *(struct recorded_thread *const *)b;

	if (one->allocs != other->allocs)
		return one->allocs > other->allocs ? -1 : 1;
	return one->tid < other->tid ? -1 : one->tid > other->tid;
}

static void print_threads(const struct overview *overview, const struct overview_sums *sums)
{
	const struct recorded_thread **threads =
		torsh_need_items(NULL, 0, sums->n_threads, sizeof(*threads));
	size_t n = 0;

	for (size_t i = 0; i < overview->n_processes; i++) {
		for (size_t k = 0; k < overview->processes[i]->n_threads; k++) {
			if (overview->processes[i]->threads[k].is_known)
				threads[n++] = &overview->processes[i]->threads[k];
		}
	}
	if (n > 1) {
		qsort(threads, n, sizeof(*threads), compare_threads);
		putchar('\n');
		torsh_text_heading(stdout, "Threads, those that allocate most first");
		for (size_t i = 0; i < n && i < THREADS_SHOWN; i++) {
			char a[SIZE_TEXT_BYTES], b[SIZE_TEXT_BYTES], c[SIZE_TEXT_BYTES];

			printf("  %-16s %8" PRIu32 " %15s allocations %10s %15s frees\n",
			       threads[i]->name ? threads[i]->name : "", threads[i]->tid,
			       torsh_size_grouped(threads[i]->allocs, a),
			       torsh_size_human(threads[i]->alloc_bytes, b),
			       torsh_size_grouped(threads[i]->frees, c));
		}
		if (n > THREADS_SHOWN)
			printf("  ... and %zu more\n", n - THREADS_SHOWN);
	}
	free(threads);
}

/* Sums over the processes, which all have the same counters. */
static void print_counters(const struct overview *overview)
{
	const struct recorded_process *first = overview->processes[0];
	char number[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < first->n_counters; i++) {
		uint64_t sum = 0;

		for (size_t k = 0; k < overview->n_processes; k++) {
			if (i < overview->processes[k]->n_counters)
				sum += overview->processes[k]->counters[i].value;
		}
		if (sum)
			printf("  %s: %s\n", first->counters[i].name,
			       torsh_size_grouped(sum, number));
	}
}

/* Prints the profiler's overhead and the facts that the numbers rest on. */
static void print_agent(const struct overview *overview, const struct overview_sums *sums)
{
	char waited[SIZE_TEXT_BYTES], bytes[SIZE_TEXT_BYTES];

	putchar('\n');
	torsh_text_heading(stdout, "About this recording");
	printf("  %s on the rings", torsh_size_human(sums->ring_bytes, bytes));
	if (sums->delivered)
		printf(", %.1f bytes an event", (double)sums->ring_bytes / (double)sums->delivered);
	printf("; threads waited %s for room\n", torsh_size_duration(sums->waited_ns, waited));
	for (size_t i = 0; i < overview->n_processes && i < PROCESSES_SHOWN; i++) {
		const struct recorded_process *process = overview->processes[i];

		if (process->allocator && *process->allocator)
			printf("  allocator of pid %" PRIu32 ": %s\n", process->pid,
			       process->allocator);
	}
	print_counters(overview);
}

void torsh_overview_text(const struct overview *overview)
{
	struct overview_sums sums = torsh_overview_sum(overview);

	print_head(overview, &sums);
	torsh_stacks_text(&overview->recording->thread_stacks);
	print_leaks(overview);
	print_peak(overview);
	if (!overview->has_timeline)
		puts("\nLeft out: devices, and what is inefficient (--no-timeline)");
	torsh_overview_devices_text(&overview->devices, overview->symbols);
	torsh_path_text(overview);
	torsh_findings_text(&overview->analysis, overview->symbols, RULES_SHOWN);
	print_temporary(overview, &sums);
	print_sizes(&sums);
	print_collectors(overview);
	print_threads(overview, &sums);
	print_agent(overview, &sums);
	printf("\nNext: torsh leaks %s    torsh peak %s    torsh export %s --format pprof -o heap.pb.gz\n",
	       overview->path, overview->path, overview->path);
	if (overview->devices.are_there)
		printf("      torsh ops %s    torsh kernels %s    torsh peak %s --device all\n",
		       overview->path, overview->path, overview->path);
}
