/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/parts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/recording/losses.h"

static void emit_frame(struct json_writer *json, const struct frame *frame)
{
	torsh_json_begin_object(json, NULL);
	if (frame->cut) {
		torsh_json_put_text(json, "cut", frame->cut);
		if (frame->address)
			torsh_json_put_hex(json, "address", frame->address);
		else
			torsh_json_put_null(json, "address");
		torsh_json_end_object(json);
		return;
	}
	torsh_json_put_text(json, "function", frame->function);
	torsh_json_put_text(json, "file", frame->file);
	torsh_json_put_known(json, "line", frame->line, (uint64_t)frame->line);
	if (frame->is_python) {
		torsh_json_put_text(json, "language", "python");
		torsh_json_end_object(json);
		return;
	}
	torsh_json_put_text(json, "module", frame->module);
	torsh_json_put_hex(json, "address", frame->address);
	torsh_json_put_known(json, "offset", frame->has_offset, frame->offset);
	if (frame->module)
		torsh_json_put_hex(json, "module_offset", frame->module_offset);
	if (frame->is_inlined)
		torsh_json_put_bool(json, "inlined", true);
	if (frame->is_signal_frame)
		torsh_json_put_bool(json, "signal_frame", true);
	if (frame->has_no_unwind_info)
		torsh_json_put_bool(json, "caller_by_frame_pointer", true);
	torsh_json_end_object(json);
}

void torsh_parts_emit_user_frame(struct json_writer *json, const struct frame *frame)
{
	if (frame)
		emit_frame(json, frame);
	else
		torsh_json_put_null(json, NULL);
}

void torsh_parts_emit_stack(struct json_writer *json, const struct frame *const *frames, size_t n)
{
	torsh_json_begin_array(json, "stack");
	for (size_t i = 0; i < n; i++)
		emit_frame(json, frames[i]);
	torsh_json_end_array(json);
}

void torsh_parts_emit_recorded_stack(struct json_writer *json,
				     const struct recorded_process *process, uint32_t stack,
				     struct symbols *symbols, enum stack_view view)
{
	size_t n;
	const struct frame **frames = torsh_stack_frames(process, stack, symbols, view, &n);

	torsh_parts_emit_stack(json, frames, n);
	free(frames);
}

static void emit_step(struct json_writer *json, const char *name, uint32_t step)
{
	torsh_json_put_known(json, name, step, step - 1);
}

static const char *const whats[] = {
	[SITE_OF_TENSORS] = "tensors",
	[SITE_OF_CACHE] = "cache of the framework's allocator",
};

void torsh_parts_emit_scope(struct json_writer *json, const struct allocation_site *site)
{
	torsh_json_put_text(json, "operator", torsh_site_operator(site));
	torsh_json_put_text(json, "module", torsh_site_module(site));
	emit_step(json, "first_step", site->first_step);
	emit_step(json, "last_step", site->last_step);
}

static void emit_ends(struct json_writer *json, const char *name, uint64_t estimate,
		      double variance)
{
	struct estimate_interval interval = torsh_estimate_interval(estimate, variance);

	torsh_json_begin_array(json, name);
	torsh_json_put_u64(json, NULL, interval.low);
	torsh_json_put_u64(json, NULL, interval.high);
	torsh_json_end_array(json);
}

void torsh_parts_emit_interval(struct json_writer *json, uint64_t sampled_every, uint64_t bytes,
			       uint64_t blocks, struct estimate_variance variance)
{
	if (!sampled_every)
		return;
	torsh_json_begin_object(json, "interval");
	torsh_json_put_u64(json, "sampled_every", sampled_every);
	emit_ends(json, "bytes", bytes, variance.bytes);
	emit_ends(json, "blocks", blocks, variance.blocks);
	torsh_json_end_object(json);
}

void torsh_parts_begin_site(struct json_writer *json, const struct allocation_site *site)
{
	torsh_json_begin_object(json, NULL);
	if (whats[site->what])
		torsh_json_put_text(json, "what", whats[site->what]);
	torsh_json_put_u64(json, "bytes", site->bytes);
	torsh_json_put_u64(json, "blocks", site->blocks);
	torsh_json_put_u64(json, "pid", site->process->pid);
	if (site->what == SITE_OF_BLOCKS)
		torsh_parts_emit_interval(json, site->process->heap.sampled_every, site->bytes,
					  site->blocks, site->variance);
	torsh_parts_emit_scope(json, site);
}

void torsh_parts_emit_site(struct json_writer *json, const struct allocation_site *site)
{
	torsh_parts_begin_site(json, site);
	torsh_parts_emit_stack(json, site->frames, site->n_frames);
	torsh_json_end_object(json);
}

static void emit_losses(struct json_writer *json, const struct losses *losses)
{
	torsh_json_begin_array(json, "losses");
	for (size_t i = 0; i < losses->n; i++) {
		const struct loss *loss = &losses->items[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "cause", loss->cause);
		torsh_json_put_bool(json, "of_events", loss->is_of_events);
		torsh_json_put_u64(json, "count", loss->count);
		torsh_json_put_text(json, "text", loss->text);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

void torsh_parts_emit_events(struct json_writer *json, struct recorded_process *const *processes,
			     size_t n)
{
	uint64_t unknown = 0, implicit = 0, late = 0, pause_frees = 0, ring_bytes = 0;
	struct losses losses;

	torsh_json_begin_object(json, "events");
	torsh_losses_sum(&losses, processes, n);
	for (size_t i = 0; i < n; i++) {
		ring_bytes += processes[i]->ring_bytes_read;
		unknown += processes[i]->heap.unknown_frees;
		pause_frees += processes[i]->heap.pause_frees;
		implicit += processes[i]->heap.implicit_frees;
		late += processes[i]->heap.late_events;
	}
	torsh_json_put_u64(json, "produced", losses.produced);
	torsh_json_put_u64(json, "delivered", losses.delivered);
	torsh_json_put_u64(json, "dropped", losses.dropped);
	torsh_json_put_u64(json, "uncommitted", losses.uncommitted);
	torsh_json_put_u64(json, "unknown_frees", unknown);
	torsh_json_put_u64(json, "pause_frees", pause_frees);
	torsh_json_put_u64(json, "implicit_frees", implicit);
	torsh_json_put_u64(json, "late", late);
	torsh_json_put_u64(json, "ring_bytes", ring_bytes);
	emit_losses(json, &losses);
	torsh_losses_free(&losses);
	torsh_json_end_object(json);
}

static void emit_texts(struct json_writer *json, const char *name, char **texts, size_t n)
{
	torsh_json_begin_array(json, name);
	for (size_t i = 0; i < n; i++)
		torsh_json_put_text(json, NULL, texts[i]);
	torsh_json_end_array(json);
}

/* A number, or null: some launchers name ranks by a text. */
static void emit_rank(struct json_writer *json, const char *rank)
{
	uint32_t number = 0;
	bool is_known = torsh_recording_rank(rank, &number);

	torsh_json_put_known(json, "rank", is_known, number);
}

/* What a fork inherited from its parent, or null: it is no fork. */
static void emit_inherited(struct json_writer *json, const struct recorded_process *process)
{
	const struct recorded_heap *heap = &process->heap;

	if (!process->forked_from) {
		torsh_json_put_null(json, "inherited");
		return;
	}
	torsh_json_begin_object(json, "inherited");
	torsh_json_put_known(json, "bytes", heap->has_inherited_bytes, heap->inherited_bytes);
	torsh_json_put_known(json, "blocks", heap->has_inherited_blocks, heap->inherited_blocks);
	torsh_json_put_known(json, "freed_blocks", heap->is_there, heap->inherited_frees);
	torsh_json_end_object(json);
}

void torsh_parts_begin_process(struct json_writer *json, const struct recorded_process *process)
{
	char end[32];

	torsh_json_begin_object(json, NULL);
	torsh_recording_end_name(process, end, sizeof(end));
	torsh_json_put_u64(json, "pid", process->pid);
	torsh_json_put_u64(json, "ppid", process->parent_pid);
	if (process->heap.sampled_every)
		torsh_json_put_u64(json, "sampled_every", process->heap.sampled_every);
	torsh_json_put_text(json, "program", process->program);
	emit_texts(json, "arguments", process->arguments, process->n_arguments);
	emit_rank(json, process->rank);
	torsh_identity_put_json(json, &process->identity);
	torsh_json_put_u64(json, "start_ns", process->start_ns);
	torsh_json_put_known(json, "end_ns",
			     process->has_end_ns &&
				     process->end != TORSH__PROCESS__END_KIND__RUNNING,
			     process->end_ns);
	torsh_json_put_text(json, "end", end);
	torsh_json_put_text(json, "allocator", process->allocator);
	emit_inherited(json, process);
	torsh_json_put_bool(json, "followed", !process->not_followed);
	torsh_json_put_text(json, "reason",
			    process->not_followed ? process->not_followed
						  : torsh_recording_heap_problem(process));
}

void torsh_parts_emit_pauses(struct json_writer *json, const struct recording *recording)
{
	torsh_json_begin_array(json, "pauses");
	for (size_t i = 0; i < recording->n_pauses; i++) {
		const struct recorded_pause *pause = &recording->pauses[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "from_ns", pause->from_ns);
		torsh_json_put_known(json, "until_ns", !pause->lasts, pause->until_ns);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

void torsh_parts_emit_unfollowed(struct json_writer *json,
				 struct recorded_process *const *unfollowed, size_t n,
				 const char *const *measured)
{
	for (size_t i = 0; i < n; i++) {
		torsh_parts_begin_process(json, unfollowed[i]);
		for (const char *const *name = measured; *name; name++)
			torsh_json_put_null(json, *name);
		torsh_json_end_object(json);
	}
}

void torsh_parts_emit_leaks(struct json_writer *json, const struct leaks_process *leaks,
			    bool is_known)
{
	torsh_json_put_known(json, "leaked_bytes", is_known, leaks->bytes);
	torsh_json_put_known(json, "leaked_blocks", is_known, leaks->blocks);
	torsh_json_put_known(json, "at_exec_bytes", is_known, leaks->exec_bytes);
	torsh_json_put_known(json, "at_exec_blocks", is_known, leaks->exec_blocks);
	if (leaks->is_helper)
		torsh_json_put_bool(json, "is_helper", true);
}

void torsh_parts_emit_helpers(struct json_writer *json, const struct helper_leaks *helpers)
{
	if (!helpers->n_processes)
		return;
	torsh_json_begin_object(json, "helpers");
	torsh_json_put_u64(json, "processes", helpers->n_processes);
	torsh_json_put_u64(json, "bytes", helpers->bytes);
	torsh_json_put_u64(json, "blocks", helpers->blocks);
	torsh_json_end_object(json);
}

void torsh_parts_emit_recording(struct json_writer *json, const struct recording *recording)
{
	torsh_json_begin_object(json, "recording");
	torsh_json_put_text(json, "file", recording->path);
	torsh_json_put_bool(json, "complete", torsh_losses_is_whole(recording));
	torsh_json_put_bool(json, "being_written", recording->is_being_written);
	torsh_json_put_known(json, "known_until_ns", recording->has_known && !recording->has_end,
			     recording->known_ns);
	torsh_json_put_bool(json, "damaged", recording->is_truncated || recording->n_bad_rows);
	emit_texts(json, "reasons", recording->reasons, recording->n_reasons);
	torsh_json_put_text(json, "record", recording->record);
	torsh_json_put_text(json, "host", recording->host);
	torsh_json_put_known(json, "start_realtime_ns", recording->has_session,
			     recording->start_realtime_ns);
	torsh_json_put_text(json, "agent_version", recording->agent_version);
	torsh_parts_emit_pauses(json, recording);
	torsh_json_put_text(json, "snapshot_of", recording->snapshot_of);
	torsh_json_put_known(json, "snapshot_ns", recording->snapshot_of, recording->snapshot_ns);
	torsh_json_end_object(json);
}

/* Returns whether a counter before counter k of process i has that name. */
static bool is_earlier_counter(struct recorded_process *const *processes, size_t i, size_t k,
			       const char *name)
{
	for (size_t j = 0; j <= i; j++) {
		size_t n = j < i ? processes[j]->n_counters : k;

		for (size_t c = 0; c < n; c++) {
			if (strcmp(processes[j]->counters[c].name, name) == 0)
				return true;
		}
	}
	return false;
}

void torsh_parts_emit_counters(struct json_writer *json, struct recorded_process *const *processes,
			       size_t n)
{
	torsh_json_begin_object(json, "counters");
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < processes[i]->n_counters; k++) {
			const char *name = processes[i]->counters[k].name;
			uint64_t sum = 0;

			if (is_earlier_counter(processes, i, k, name))
				continue;
			for (size_t j = i; j < n; j++) {
				for (size_t c = 0; c < processes[j]->n_counters; c++) {
					if (strcmp(processes[j]->counters[c].name, name) == 0)
						sum += processes[j]->counters[c].value;
				}
			}
			torsh_json_put_name(json, name);
			torsh_json_put_u64(json, NULL, sum);
		}
	}
	torsh_json_end_object(json);
}

/* Returns whether a note before note k of process i has that text. */
static bool is_earlier_note(struct recorded_process *const *processes, size_t i, size_t k,
			    const char *text)
{
	for (size_t j = 0; j <= i; j++) {
		size_t n = j < i ? processes[j]->n_notes : k;

		for (size_t m = 0; m < n; m++) {
			if (strcmp(processes[j]->notes[m], text) == 0)
				return true;
		}
	}
	return false;
}

void torsh_parts_emit_note_items(struct json_writer *json,
				 struct recorded_process *const *processes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < processes[i]->n_notes; k++) {
			const char *note = processes[i]->notes[k];

			if (!is_earlier_note(processes, i, k, note))
				torsh_json_put_text(json, NULL, note);
		}
	}
}

void torsh_parts_emit_notes(struct json_writer *json, struct recorded_process *const *processes,
			    size_t n)
{
	torsh_json_begin_array(json, "notes");
	torsh_parts_emit_note_items(json, processes, n);
	torsh_json_end_array(json);
}

void torsh_parts_emit_omitted(struct json_writer *json, const struct allocation_sites *sites,
			      size_t first)
{
	uint64_t blocks = sites->rest.blocks, bytes = sites->rest.bytes;
	size_t n = first < sites->n ? sites->n - first : 0;

	torsh_json_begin_object(json, "omitted");
	for (size_t i = first; i < sites->n; i++) {
		blocks += sites->items[i].blocks;
		bytes += sites->items[i].bytes;
	}
	torsh_json_put_u64(json, "groups", n + sites->rest.n);
	torsh_json_put_u64(json, "bytes", bytes);
	torsh_json_put_u64(json, "blocks", blocks);
	torsh_json_end_object(json);
}
