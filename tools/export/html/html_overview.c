/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>

#include "tools/export/html/html_page.h"
#include "tools/recording/losses.h"

#define POINTS 1500u /* per curve */
#define THREADS 200u

static void put_texts(struct html_page *page, const char *name, char **texts, size_t n)
{
	torsh_json_begin_array(&page->json, name);
	for (size_t i = 0; i < n; i++)
		torsh_html_put_text(page, NULL, texts[i]);
	torsh_json_end_array(&page->json);
}

/* ---- the recording --------------------------------------------------------------------------- */

static void put_pauses(struct html_page *page)
{
	const struct recording *recording = page->trace->recording;

	torsh_json_begin_array(&page->json, "pauses");
	for (size_t i = 0; i < recording->n_pauses; i++) {
		const struct recorded_pause *pause = &recording->pauses[i];

		torsh_json_begin_array(&page->json, NULL);
		torsh_json_put_u64(&page->json, NULL, pause->from_ns);
		torsh_json_put_known(&page->json, NULL, !pause->lasts, pause->until_ns);
		torsh_json_end_array(&page->json);
	}
	torsh_json_end_array(&page->json);
}

static void put_recording(struct html_page *page)
{
	const struct trace *trace = page->trace;
	const struct recording *recording = trace->recording;
	struct json_writer *json = &page->json;
	char *losses = torsh_losses_sentence(recording, trace->processes, trace->n_processes);

	torsh_json_begin_object(json, "recording");
	torsh_json_put_text(json, "made_by", "torsh " TORSH_VERSION);
	torsh_html_put_text(page, "file", recording->path);
	torsh_html_put_text(page, "host", recording->host);
	torsh_html_put_text(page, "record", recording->record);
	torsh_html_put_text(page, "agent_version", recording->agent_version);
	torsh_html_put_text(page, "loss", losses);
	torsh_html_put_text(page, "snapshot_of", recording->snapshot_of);
	torsh_json_put_known(json, "start_realtime_ms", recording->has_session,
			     recording->start_realtime_ns / 1000000);
	torsh_json_put_known(json, "end_ns", recording->has_end, recording->end_ns);
	torsh_json_put_u64(json, "size_bytes", recording->size_bytes);
	torsh_json_put_bool(json, "is_whole", torsh_losses_is_whole(recording));
	torsh_json_put_bool(json, "is_being_written", recording->is_being_written);
	torsh_json_put_bool(json, "is_damaged", recording->is_truncated || recording->n_bad_rows);
	torsh_json_put_known(json, "writer_bytes", recording->writer.has_resident,
			     recording->writer.resident_bytes);
	torsh_json_put_known(json, "stacks", recording->writer.is_known, recording->writer.stacks);
	put_texts(page, "reasons", recording->reasons, recording->n_reasons);
	put_pauses(page);
	torsh_json_end_object(json);
	free(losses);
}

static void put_losses(struct html_page *page)
{
	const struct trace *trace = page->trace;
	struct json_writer *json = &page->json;
	struct losses losses;

	torsh_losses_sum(&losses, trace->processes, trace->n_processes);
	torsh_json_begin_object(json, "events");
	torsh_json_put_u64(json, "produced", losses.produced);
	torsh_json_put_u64(json, "delivered", losses.delivered);
	torsh_json_put_u64(json, "dropped", losses.dropped);
	torsh_json_put_u64(json, "uncommitted", losses.uncommitted);
	torsh_json_begin_array(json, "losses");
	for (size_t i = 0; i < losses.n; i++) {
		char *words = torsh_losses_words(&losses.items[i]);

		torsh_html_put_text(page, NULL, words);
		free(words);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
	torsh_losses_free(&losses);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Row of a thread: [tid, name, start, end, allocations, bytes, frees, dropped] */
static void put_threads(struct html_page *page, const struct recorded_process *process)
{
	struct json_writer *json = &page->json;
	size_t n = torsh_html_limit(page, THREADS);

	torsh_json_begin_array(json, "threads");
	for (size_t i = 0; i < process->n_threads && i < n; i++) {
		const struct recorded_thread *thread = &process->threads[i];

		if (!thread->is_known)
			continue;
		torsh_json_begin_array(json, NULL);
		torsh_json_put_u64(json, NULL, thread->tid);
		torsh_html_put_text(page, NULL, thread->name);
		torsh_json_put_u64(json, NULL, thread->start_ns);
		torsh_json_put_known(json, NULL, thread->end_ns != 0, thread->end_ns);
		torsh_json_put_u64(json, NULL, thread->allocs);
		torsh_json_put_u64(json, NULL, thread->alloc_bytes);
		torsh_json_put_u64(json, NULL, thread->frees);
		torsh_json_put_u64(json, NULL, thread->dropped);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "n_threads", process->n_threads);
}

static void put_end(struct html_page *page, const struct recorded_process *process)
{
	bool is_over = process->has_end_ns && process->end != TORSH__PROCESS__END_KIND__RUNNING;
	bool is_bad =
		!process->not_followed && (process->end == TORSH__PROCESS__END_KIND__SIGNALED ||
					   process->end == TORSH__PROCESS__END_KIND__VANISHED ||
					   (process->end == TORSH__PROCESS__END_KIND__EXITED &&
					    process->has_end_code && process->end_code));
	char end[32];

	torsh_recording_end_name(process, end, sizeof(end));
	torsh_html_put_text(page, "end", end);
	torsh_json_put_bool(&page->json, "is_bad_end", is_bad);
	torsh_json_put_known(&page->json, "end_ns", is_over, process->end_ns);
}

/* Put [from ns, blocks, bytes]: the lifetimes of freed blocks. */
static void put_lifetimes(struct json_writer *json, const struct recorded_heap *heap)
{
	torsh_json_begin_array(json, "lifetimes");
	for (size_t i = 0; i < heap->n_lifetimes; i++) {
		torsh_json_begin_array(json, NULL);
		torsh_json_put_u64(json, NULL, heap->lifetimes[i].from_ns);
		torsh_json_put_u64(json, NULL, heap->lifetimes[i].blocks);
		torsh_json_put_u64(json, NULL, heap->lifetimes[i].bytes);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
}

static void put_heap(struct html_page *page, const struct recorded_process *process)
{
	const struct recorded_heap *heap = &process->heap;
	struct json_writer *json = &page->json;

	torsh_html_put_text(page, "heap_problem", torsh_recording_heap_problem(process));
	if (!torsh_recording_has_heap(process))
		return;
	torsh_json_put_u64(json, "peak_bytes", heap->peak_bytes);
	torsh_json_put_u64(json, "peak_blocks", heap->peak_blocks);
	torsh_json_put_u64(json, "peak_ns", heap->peak_ns);
	torsh_json_put_u64(json, "allocs", heap->allocs);
	torsh_json_put_u64(json, "frees", heap->frees);
	torsh_json_put_u64(json, "reallocs", heap->reallocs);
	torsh_json_put_u64(json, "alloc_bytes", heap->alloc_bytes);
	torsh_json_put_u64(json, "temporary", heap->temporary);
	torsh_json_begin_array(json, "sizes");
	for (size_t i = 0; i < PROFILE_SIZE_CLASSES; i++)
		torsh_json_put_u64(json, NULL, heap->size_blocks[i]);
	torsh_json_end_array(json);
	put_lifetimes(json, heap);
}

/* leaks: NULL if the process was not followed */
static void put_process(struct html_page *page, const struct recorded_process *process,
			const struct leaks_process *leaks)
{
	struct json_writer *json = &page->json;
	uint32_t rank = 0;
	bool has_rank = torsh_recording_rank(process->rank, &rank);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", process->pid);
	torsh_json_put_u64(json, "parent_pid", process->parent_pid);
	torsh_json_put_known(json, "number", leaks != NULL, process->number);
	torsh_json_put_u64(json, "forked_from", process->forked_from);
	torsh_json_put_u64(json, "executed_from", process->executed_from);
	torsh_html_put_text(page, "program", process->program);
	put_texts(page, "arguments", process->arguments, process->n_arguments);
	torsh_json_put_known(json, "rank", has_rank, rank);
	torsh_json_put_known(json, "world_size", process->identity.has_world_size,
			     process->identity.world_size);
	torsh_json_put_u64(json, "start_ns", process->start_ns);
	put_end(page, process);
	torsh_html_put_text(page, "allocator", process->allocator);
	torsh_html_put_text(page, "not_followed", process->not_followed);
	torsh_json_put_known(json, "rss_peak_bytes", process->has_rss_peak,
			     process->rss_peak_bytes);
	torsh_html_put_text(page, "rss_peak_source", process->rss_peak_source);
	torsh_json_put_u64(json, "waited_ns", process->waited_ns);
	put_texts(page, "notes", process->notes, process->n_notes);
	if (leaks) {
		torsh_json_put_u64(json, "leaked_bytes", leaks->bytes);
		torsh_json_put_u64(json, "leaked_blocks", leaks->blocks);
		put_heap(page, process);
		put_threads(page, process);
	}
	torsh_json_end_object(json);
}

static void put_processes(struct html_page *page)
{
	const struct trace *trace = page->trace;
	const struct recording *recording = trace->recording;

	torsh_json_begin_array(&page->json, "processes");
	for (size_t i = 0; i < trace->n_processes; i++)
		put_process(page, trace->processes[i], &page->memory.leaks.processes[i]);
	for (size_t i = 0; i < recording->n_unfollowed; i++)
		put_process(page, recording->unfollowed[i], NULL);
	torsh_json_end_array(&page->json);
}

/* Put sums of the agent's counters, [name, value], except zeros. */
static void put_counters(struct html_page *page)
{
	const struct trace *trace = page->trace;

	torsh_json_begin_array(&page->json, "counters");
	for (size_t i = 0; i < trace->n_processes; i++) {
		const struct recorded_process *process = trace->processes[i];

		for (size_t k = 0; k < process->n_counters; k++) {
			if (!process->counters[k].value)
				continue;
			torsh_json_begin_array(&page->json, NULL);
			torsh_json_put_u64(&page->json, NULL, i);
			torsh_html_put_text(page, NULL, process->counters[k].name);
			torsh_json_put_u64(&page->json, NULL, process->counters[k].value);
			torsh_json_end_array(&page->json);
		}
	}
	torsh_json_end_array(&page->json);
}

/* ---- curves ---------------------------------------------------------------------------------- */

/* Returns the one of n samples with the largest heap. */
static const struct recorded_sample *largest(const struct recorded_sample *samples, size_t n)
{
	const struct recorded_sample *most = samples;

	for (size_t i = 1; i < n; i++)
		most = samples[i].heap_bytes > most->heap_bytes ? &samples[i] : most;
	return most;
}

static void put_curve(struct html_page *page, size_t i)
{
	const struct recorded_process *process = page->trace->processes[i];
	size_t n_points = torsh_html_limit(page, POINTS);
	size_t a_point = n_points ? process->n_series / n_points + 1 : process->n_series + 1;
	struct json_writer *json = &page->json;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "process", i);
	torsh_json_begin_array(json, "points");
	for (size_t k = 0; k < process->n_series; k += a_point) {
		size_t n = process->n_series - k < a_point ? process->n_series - k : a_point;
		const struct recorded_sample *sample = largest(process->series + k, n);

		torsh_json_begin_array(json, NULL);
		torsh_json_put_u64(json, NULL, sample->at_ns / 1000);
		torsh_json_put_u64(json, NULL, sample->heap_bytes);
		torsh_json_put_u64(json, NULL, sample->mapped_bytes);
		torsh_json_put_known(json, NULL, sample->rss_bytes != 0, sample->rss_bytes);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void put_curves(struct html_page *page)
{
	torsh_json_begin_array(&page->json, "curves");
	for (size_t i = 0; i < page->trace->n_processes; i++) {
		if (page->trace->processes[i]->n_series)
			put_curve(page, i);
	}
	torsh_json_end_array(&page->json);
}

void torsh_html_overview_put(struct html_page *page)
{
	put_recording(page);
	put_losses(page);
	put_processes(page);
	put_counters(page);
	put_curves(page);
}
