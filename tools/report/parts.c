/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/parts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/recording/losses.h"

static cJSON *make_frame(const struct frame *frame)
{
	cJSON *object = torsh_json_object();

	if (frame->cut) {
		torsh_json_set(object, "cut", torsh_json_text(frame->cut));
		torsh_json_set(object, "address",
			       frame->address ? torsh_json_hex(frame->address)
					      : torsh_json_text(NULL));
		return object;
	}
	torsh_json_set(object, "function", torsh_json_text(frame->function));
	torsh_json_set(object, "file", torsh_json_text(frame->file));
	torsh_json_set(object, "line",
		       frame->line ? torsh_json_u64((uint64_t)frame->line) : torsh_json_text(NULL));
	if (frame->is_python) {
		torsh_json_set(object, "language", torsh_json_text("python"));
		return object;
	}
	torsh_json_set(object, "module", torsh_json_text(frame->module));
	torsh_json_set(object, "address", torsh_json_hex(frame->address));
	torsh_json_set(object, "offset",
		       frame->has_offset ? torsh_json_u64(frame->offset) : torsh_json_text(NULL));
	if (frame->module)
		torsh_json_set(object, "module_offset", torsh_json_hex(frame->module_offset));
	if (frame->is_inlined)
		torsh_json_set(object, "inlined", torsh_json_bool(true));
	if (frame->is_signal_frame)
		torsh_json_set(object, "signal_frame", torsh_json_bool(true));
	if (frame->has_no_unwind_info)
		torsh_json_set(object, "caller_by_frame_pointer", torsh_json_bool(true));
	return object;
}

cJSON *torsh_parts_stack(const struct frame *const *frames, size_t n)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < n; i++)
		torsh_json_add(list, make_frame(frames[i]));
	return list;
}

cJSON *torsh_parts_recorded_stack(const struct recorded_process *process, uint32_t stack,
				  struct symbols *symbols, enum stack_view view)
{
	size_t n;
	const struct frame **frames = torsh_stack_frames(process, stack, symbols, view, &n);
	cJSON *list = torsh_parts_stack(frames, n);

	free(frames);
	return list;
}

static cJSON *make_step(uint32_t step)
{
	return step ? torsh_json_u64(step - 1) : torsh_json_text(NULL);
}

static const char *const whats[] = {
	[SITE_OF_TENSORS] = "tensors",
	[SITE_OF_CACHE] = "cache of the framework's allocator",
};

cJSON *torsh_parts_site(const struct allocation_site *site, bool with_pid)
{
	cJSON *object = torsh_json_object();

	if (whats[site->what])
		torsh_json_set(object, "what", torsh_json_text(whats[site->what]));

	torsh_json_set(object, "bytes", torsh_json_u64(site->bytes));
	torsh_json_set(object, "blocks", torsh_json_u64(site->blocks));
	if (with_pid)
		torsh_json_set(object, "pid", torsh_json_u64(site->process->pid));
	torsh_json_set(object, "operator", torsh_json_text(torsh_site_operator(site)));
	torsh_json_set(object, "module", torsh_json_text(torsh_site_module(site)));
	torsh_json_set(object, "first_step", make_step(site->first_step));
	torsh_json_set(object, "last_step", make_step(site->last_step));
	torsh_json_set(object, "stack", torsh_parts_stack(site->frames, site->n_frames));
	return object;
}

static cJSON *make_losses(const struct losses *losses)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < losses->n; i++) {
		const struct loss *loss = &losses->items[i];
		cJSON *object = torsh_json_object();

		torsh_json_set(object, "cause", torsh_json_text(loss->cause));
		torsh_json_set(object, "of_events", torsh_json_bool(loss->is_of_events));
		torsh_json_set(object, "count", torsh_json_u64(loss->count));
		torsh_json_set(object, "text", torsh_json_text(loss->text));
		torsh_json_add(list, object);
	}
	return list;
}

cJSON *torsh_parts_events(struct recorded_process *const *processes, size_t n)
{
	uint64_t unknown = 0, implicit = 0, late = 0, pause_frees = 0, ring_bytes = 0;
	cJSON *object = torsh_json_object();
	struct losses losses;

	torsh_losses_sum(&losses, processes, n);
	for (size_t i = 0; i < n; i++) {
		ring_bytes += processes[i]->ring_bytes_read;
		unknown += processes[i]->heap.unknown_frees;
		pause_frees += processes[i]->heap.pause_frees;
		implicit += processes[i]->heap.implicit_frees;
		late += processes[i]->heap.late_events;
	}
	torsh_json_set(object, "produced", torsh_json_u64(losses.produced));
	torsh_json_set(object, "delivered", torsh_json_u64(losses.delivered));
	torsh_json_set(object, "dropped", torsh_json_u64(losses.dropped));
	torsh_json_set(object, "uncommitted", torsh_json_u64(losses.uncommitted));
	torsh_json_set(object, "unknown_frees", torsh_json_u64(unknown));
	torsh_json_set(object, "pause_frees", torsh_json_u64(pause_frees));
	torsh_json_set(object, "implicit_frees", torsh_json_u64(implicit));
	torsh_json_set(object, "late", torsh_json_u64(late));
	torsh_json_set(object, "ring_bytes", torsh_json_u64(ring_bytes));
	torsh_json_set(object, "losses", make_losses(&losses));
	torsh_losses_free(&losses);
	return object;
}

static cJSON *known_or_null(bool is_known, uint64_t number)
{
	return is_known ? torsh_json_u64(number) : torsh_json_text(NULL);
}

static cJSON *make_texts(char **texts, size_t n)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < n; i++)
		torsh_json_add(list, torsh_json_text(texts[i]));
	return list;
}

/* A number, or null: a launcher that calls ranks by names is not known. */
static cJSON *make_rank(const char *rank)
{
	uint32_t number;

	return torsh_recording_rank(rank, &number) ? torsh_json_u64(number) : torsh_json_text(NULL);
}

/* What a fork had of its parent's, or null: it is none. */
static cJSON *make_inherited(const struct recorded_process *process)
{
	const struct recorded_heap *heap = &process->heap;
	cJSON *object;

	if (!process->forked_from)
		return torsh_json_text(NULL);
	object = torsh_json_object();
	torsh_json_set(object, "bytes",
		       known_or_null(heap->has_inherited_bytes, heap->inherited_bytes));
	torsh_json_set(object, "blocks",
		       known_or_null(heap->has_inherited_blocks, heap->inherited_blocks));
	torsh_json_set(object, "freed_blocks",
		       known_or_null(heap->is_there, heap->inherited_frees));
	return object;
}

cJSON *torsh_parts_process(const struct recorded_process *process)
{
	cJSON *object = torsh_json_object();
	char end[32];

	torsh_recording_end_name(process, end, sizeof(end));
	torsh_json_set(object, "pid", torsh_json_u64(process->pid));
	torsh_json_set(object, "ppid", torsh_json_u64(process->parent_pid));
	torsh_json_set(object, "program", torsh_json_text(process->program));
	torsh_json_set(object, "arguments", make_texts(process->arguments, process->n_arguments));
	torsh_json_set(object, "rank", make_rank(process->rank));
	torsh_json_set(object, "start_ns", torsh_json_u64(process->start_ns));
	torsh_json_set(object, "end_ns",
		       known_or_null(process->has_end_ns &&
					     process->end != TORSH__PROCESS__END_KIND__RUNNING,
				     process->end_ns));
	torsh_json_set(object, "end", torsh_json_text(end));
	torsh_json_set(object, "allocator", torsh_json_text(process->allocator));
	torsh_json_set(object, "inherited", make_inherited(process));
	torsh_json_set(object, "followed", torsh_json_bool(!process->not_followed));
	torsh_json_set(object, "reason",
		       torsh_json_text(process->not_followed
					       ? process->not_followed
					       : torsh_recording_heap_problem(process)));
	return object;
}

cJSON *torsh_parts_pauses(const struct recording *recording)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < recording->n_pauses; i++) {
		const struct recorded_pause *pause = &recording->pauses[i];
		cJSON *object = torsh_json_object();

		torsh_json_set(object, "from_ns", torsh_json_u64(pause->from_ns));
		torsh_json_set(object, "until_ns",
			       pause->lasts ? torsh_json_text(NULL)
					    : torsh_json_u64(pause->until_ns));
		torsh_json_add(list, object);
	}
	return list;
}

void torsh_parts_add_unfollowed(cJSON *list, struct recorded_process *const *unfollowed, size_t n,
				const char *const *measured)
{
	for (size_t i = 0; i < n; i++) {
		cJSON *object = torsh_parts_process(unfollowed[i]);

		for (const char *const *name = measured; *name; name++)
			torsh_json_set(object, *name, torsh_json_text(NULL));
		torsh_json_add(list, object);
	}
}

void torsh_parts_set_leaks(cJSON *object, const struct leaks_process *leaks, bool is_known)
{
	torsh_json_set(object, "leaked_bytes", known_or_null(is_known, leaks->bytes));
	torsh_json_set(object, "leaked_blocks", known_or_null(is_known, leaks->blocks));
	torsh_json_set(object, "at_exec_bytes", known_or_null(is_known, leaks->exec_bytes));
	torsh_json_set(object, "at_exec_blocks", known_or_null(is_known, leaks->exec_blocks));
}

cJSON *torsh_parts_recording(const struct recording *recording)
{
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "file", torsh_json_text(recording->path));
	torsh_json_set(object, "complete", torsh_json_bool(torsh_losses_is_whole(recording)));
	torsh_json_set(object, "being_written", torsh_json_bool(recording->is_being_written));
	torsh_json_set(object, "known_until_ns",
		       recording->has_known && !recording->has_end
			       ? torsh_json_u64(recording->known_ns)
			       : torsh_json_text(NULL));
	torsh_json_set(object, "damaged",
		       torsh_json_bool(recording->is_truncated || recording->n_bad_rows));
	torsh_json_set(object, "reasons", make_texts(recording->reasons, recording->n_reasons));
	torsh_json_set(object, "record", torsh_json_text(recording->record));
	torsh_json_set(object, "host", torsh_json_text(recording->host));
	torsh_json_set(object, "start_realtime_ns",
		       recording->has_session ? torsh_json_u64(recording->start_realtime_ns)
					      : torsh_json_text(NULL));
	torsh_json_set(object, "agent_version", torsh_json_text(recording->agent_version));
	torsh_json_set(object, "pauses", torsh_parts_pauses(recording));
	torsh_json_set(object, "snapshot_of", torsh_json_text(recording->snapshot_of));
	torsh_json_set(object, "snapshot_ns",
		       recording->snapshot_of ? torsh_json_u64(recording->snapshot_ns)
					      : torsh_json_text(NULL));
	return object;
}

cJSON *torsh_parts_counters(struct recorded_process *const *processes, size_t n)
{
	cJSON *object = torsh_json_object();

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < processes[i]->n_counters; k++) {
			const char *name = processes[i]->counters[k].name;
			uint64_t sum = 0;

			if (cJSON_GetObjectItemCaseSensitive(object, name))
				continue;
			for (size_t j = i; j < n; j++) {
				for (size_t c = 0; c < processes[j]->n_counters; c++) {
					if (strcmp(processes[j]->counters[c].name, name) == 0)
						sum += processes[j]->counters[c].value;
				}
			}
			torsh_json_set(object, name, torsh_json_u64(sum));
		}
	}
	return object;
}

static bool has_text(const cJSON *list, const char *text)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		if (strcmp(item->valuestring, text) == 0)
			return true;
	}
	return false;
}

cJSON *torsh_parts_notes(struct recorded_process *const *processes, size_t n)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < processes[i]->n_notes; k++) {
			if (!has_text(list, processes[i]->notes[k]))
				torsh_json_add(list, torsh_json_text(processes[i]->notes[k]));
		}
	}
	return list;
}

cJSON *torsh_parts_omitted(const struct allocation_sites *sites, size_t first)
{
	cJSON *object = torsh_json_object();
	uint64_t blocks = 0, bytes = 0;

	for (size_t i = first; i < sites->n; i++) {
		blocks += sites->items[i].blocks;
		bytes += sites->items[i].bytes;
	}
	torsh_json_set(object, "groups", torsh_json_u64(first < sites->n ? sites->n - first : 0));
	torsh_json_set(object, "bytes", torsh_json_u64(bytes));
	torsh_json_set(object, "blocks", torsh_json_u64(blocks));
	return object;
}
