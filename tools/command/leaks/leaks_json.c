/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/leaks/leaks_view.h"

#include <math.h>
#include <stdlib.h>

#include "tools/frames/blamed_line.h"
#include "tools/frames/short_name.h"
#include "tools/memory/moments.h"
#include "tools/recording/losses.h"
#include "tools/report/device_report.h"
#include "tools/report/parts.h"
#include "tools/report/selection.h"

static void put_amount(struct json_writer *json, uint64_t bytes, uint64_t blocks)
{
	torsh_json_put_u64(json, "bytes", bytes);
	torsh_json_put_u64(json, "blocks", blocks);
}

/* Emit {"bytes", "blocks"}. */
static void emit_amount(struct json_writer *json, const char *name, bool is_known, uint64_t bytes,
			uint64_t blocks)
{
	torsh_json_begin_object(json, name);
	torsh_json_put_known(json, "bytes", is_known, bytes);
	torsh_json_put_known(json, "blocks", is_known, blocks);
	torsh_json_end_object(json);
}

static void emit_class_sums(struct json_writer *json, const char *name,
			    const struct class_sums *sums)
{
	torsh_json_begin_object(json, name);
	for (int i = 0; i < BLOCKS_FREED_AT_EXIT; i++)
		emit_amount(json, torsh_block_class_name((enum block_class)i), true, sums->bytes[i],
			    sums->blocks[i]);
	torsh_json_end_object(json);
}

/* Returns how long a process was recorded, in the window if there is one. */
static uint64_t recorded_ns(const struct leaks_view *view, const struct recorded_process *process)
{
	const struct windows *windows = view->leaks.windows;
	uint64_t end_ns = torsh_memory_end_ns(process), sum = 0;
	size_t i = 0;

	if (!windows)
		return end_ns > process->start_ns ? end_ns - process->start_ns : 0;
	while (windows->processes[i] != process)
		i++;
	for (size_t k = 0; k < windows->items[i].n; k++) {
		const struct window_span *span = &windows->items[i].spans[k];
		uint64_t from = span->from_ns > process->start_ns ? span->from_ns
								  : process->start_ns,
			 to = span->to_ns < end_ns ? span->to_ns : end_ns;

		sum += to > from ? to - from : 0;
	}
	return sum;
}

static void emit_rates(struct json_writer *json, const struct leaks_view *view,
		       const struct allocation_site *site)
{
	double seconds = (double)recorded_ns(view, site->process) / 1e9;

	torsh_json_put_double(json, "bytes_per_s",
			      seconds > 0 ? (double)site->bytes / seconds : NAN);
	torsh_json_put_double(json, "blocks_per_s",
			      seconds > 0 ? (double)site->blocks / seconds : NAN);
}

static void emit_leak(struct json_writer *json, const struct leaks_view *view,
		      const struct allocation_site *site)
{
	struct blamed_line blamed =
		torsh_blamed_line(site->frames, site->n_frames, torsh_working_directory());

	torsh_parts_begin_site(json, site);
	torsh_json_put_text(json, "class", torsh_block_class_name(torsh_block_class_of(site)));
	emit_class_sums(json, "classes", &site->classes);
	torsh_json_put_name(json, "user_frame");
	torsh_parts_emit_user_frame(json, blamed.is_own ? site->frames[blamed.where] : NULL);
	torsh_json_put_known(json, "usable_bytes", site->usable_is_known, site->usable_bytes);
	torsh_json_put_known(json, "first_ns", site->has_times, site->first_ns);
	torsh_json_put_known(json, "last_ns", site->has_times, site->last_ns);
	emit_rates(json, view, site);
	torsh_parts_emit_stack(json, site->frames, site->n_frames);
	torsh_json_end_object(json);
}

static void emit_classes(struct json_writer *json, const struct leaks_view *view)
{
	char *reason = torsh_leaks_why_unjudged(view);

	emit_class_sums(json, "by_class", &view->leaks.classes);
	torsh_json_begin_object(json, "reachability");
	torsh_json_put_bool(json, "judged", !reason);
	torsh_json_put_text(json, "reason", reason);
	torsh_json_end_object(json);
	free(reason);
}

static void emit_bookkeeping(struct json_writer *json, const struct leaks *leaks)
{
	torsh_json_begin_object(json, "bookkeeping");
	put_amount(json, leaks->bookkeeping_bytes, leaks->bookkeeping_blocks);
	torsh_json_begin_array(json, "by");
	for (size_t i = 0; i < leaks->n_bookkeeping; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "what", leaks->bookkeeping[i].what);
		put_amount(json, leaks->bookkeeping[i].bytes, leaks->bookkeeping[i].blocks);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void emit_suppressed(struct json_writer *json, const struct leaks *leaks,
			    const struct suppress *suppress)
{
	torsh_json_begin_object(json, "suppressed");
	put_amount(json, leaks->suppressed_bytes, leaks->suppressed_blocks);
	torsh_json_begin_array(json, "by");
	for (size_t i = 0; i < suppress->n; i++) {
		if ((suppress->rules[i].is_built_in || suppress->rules[i].process) &&
		    !suppress->rules[i].n_stacks)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "rule", suppress->rules[i].pattern);
		torsh_json_put_text(json, "kind", torsh_suppress_kind(&suppress->rules[i]));
		torsh_json_put_bool(json, "built_in", suppress->rules[i].is_built_in);
		put_amount(json, suppress->rules[i].bytes, suppress->rules[i].blocks);
		torsh_json_put_u64(json, "stacks", suppress->rules[i].n_stacks);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

/*
 * Emit what packages keep by their imports, or since their first use; suppressed: the part that a
 * rule suppressed, which only imports have.
 */
static void emit_kept(struct json_writer *json, const char *name, const struct kept_imports *kept,
		      bool has_suppressed)
{
	torsh_json_begin_object(json, name);
	put_amount(json, kept->bytes, kept->blocks);
	if (has_suppressed)
		torsh_json_put_u64(json, "suppressed_bytes", kept->suppressed_bytes);
	torsh_json_begin_array(json, "by");
	for (size_t i = 0; i < kept->n; i++) {
		const struct kept_import *item = &kept->items[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "package", item->package);
		put_amount(json, item->bytes, item->blocks);
		if (has_suppressed) {
			torsh_json_put_u64(json, "suppressed_bytes", item->suppressed_bytes);
			torsh_json_put_u64(json, "suppressed_blocks", item->suppressed_blocks);
		}
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

/* Emit what was held to the end, with its large sites. */
static void emit_held(struct json_writer *json, const struct leaks_view *view)
{
	const struct leaks *leaks = &view->leaks;

	torsh_json_begin_object(json, "freed_at_exit");
	put_amount(json, leaks->held_bytes, leaks->held_blocks);
	torsh_json_begin_lines(json, "large");
	for (size_t i = 0; i < view->n_held_shown; i++)
		emit_leak(json, view, &leaks->held.items[i]);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

/* Emit sites with an unknown part in the window. */
static void emit_window(struct json_writer *json, const struct leaks_view *view)
{
	const struct leaks *leaks = &view->leaks;

	if (!leaks->windows)
		return;
	torsh_selection_windows_json(json, leaks->windows);
	torsh_json_begin_object(json, "undecided");
	put_amount(json, leaks->undecided_bytes, leaks->undecided_blocks);
	torsh_json_begin_lines(json, "leaks");
	for (size_t i = 0; i < view->n_undecided_shown; i++)
		emit_leak(json, view, &leaks->undecided.items[i]);
	torsh_json_end_array(json);
	torsh_parts_emit_omitted(json, &leaks->undecided, view->n_undecided_shown);
	torsh_json_end_object(json);
}

static void emit_processes(struct json_writer *json, const struct leaks_view *view)
{
	static const char *const measured[] = {"leaked_bytes", "leaked_blocks", "at_exec_bytes",
					       "at_exec_blocks", NULL};

	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < view->reading->n_processes; i++) {
		torsh_parts_begin_process(json, view->reading->processes[i]);
		torsh_parts_emit_leaks(json, &view->leaks.processes[i],
				       view->leaks.device || torsh_recording_has_heap(
								     view->reading->processes[i]));
		torsh_json_end_object(json);
	}
	torsh_parts_emit_unfollowed(json, view->reading->unfollowed, view->reading->n_unfollowed,
				    measured);
	torsh_json_end_array(json);
}

/*
 * Returns the last image of the first process: a wrapper that executed the program is an earlier
 * image.
 */
static const struct recorded_process *last_image(const struct reading *reading)
{
	const struct recorded_process *image = reading->processes[0];

	for (size_t i = 1; i < reading->n_processes; i++)
		if (image->end == TORSH__PROCESS__END_KIND__EXECUTED &&
		    reading->processes[i]->pid == image->pid)
			image = reading->processes[i];
	return image;
}

/* Emit members in addition to the heap report's. */
static void emit_device(struct json_writer *json, const struct leaks_view *view)
{
	const struct leaks *leaks = &view->leaks;

	if (!leaks->devices)
		return;
	torsh_json_put_text(json, "device", leaks->device);
	emit_amount(json, "with_context", true, leaks->with_context.bytes,
		    leaks->with_context.blocks);
	torsh_json_begin_array(json, "devices");
	for (size_t i = 0; i < leaks->devices->n; i++) {
		const struct device_process *process = &leaks->devices->items[i];
		size_t place = torsh_device_place(process, leaks->device);

		if (place != DEVICE_NO_PLACE)
			torsh_device_end_json(json, process, place);
	}
	torsh_json_end_array(json);
}

void torsh_leaks_json(const struct leaks_view *view)
{
	const struct leaks *leaks = &view->leaks;
	const struct reading *reading = view->reading;
	const struct recorded_process *first = last_image(reading);
	bool is_known = leaks->device ||
			torsh_recording_has_heaps(reading->processes, reading->n_processes);
	struct json_writer json;
	char end[32];

	torsh_recording_end_name(first, end, sizeof(end));
	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_u64(&json, "pid", first->pid);
	torsh_json_put_text(&json, "program", first->program);
	torsh_json_put_text(&json, "end", end);
	torsh_json_put_text(&json, "alive_at", leaks->at_exec ? "exec" : "end");
	emit_device(&json, view);
	torsh_json_put_known(&json, "leaked_bytes", is_known, leaks->bytes);
	torsh_json_put_known(&json, "leaked_blocks", is_known, leaks->blocks);
	if (!leaks->device)
		torsh_parts_emit_interval(&json, first->heap.sampled_every, leaks->bytes,
					  leaks->blocks, torsh_sites_variance(&leaks->found));
	emit_amount(&json, "alive", is_known, leaks->alive_bytes, leaks->alive_blocks);
	torsh_json_put_known(&json, "usable_bytes", leaks->usable_is_known, leaks->usable_bytes);
	if (leaks->usable_is_known)
		torsh_json_put_i64(&json, "overhead_bytes",
				   (int64_t)(leaks->usable_bytes - leaks->bytes));
	else
		torsh_json_put_null(&json, "overhead_bytes");
	emit_classes(&json, view);
	torsh_json_begin_lines(&json, "leaks");
	for (size_t i = 0; i < view->n_shown; i++)
		emit_leak(&json, view, &leaks->found.items[i]);
	torsh_json_end_array(&json);
	torsh_parts_emit_omitted(&json, &leaks->found, view->n_shown);
	emit_held(&json, view);
	torsh_leaks_python_json(&json, view);
	emit_window(&json, view);
	emit_bookkeeping(&json, leaks);
	emit_suppressed(&json, leaks, &view->options->suppress);
	emit_kept(&json, "kept_by_imports", &leaks->imports, true);
	torsh_parts_emit_helpers(&json, &leaks->helpers);
	emit_kept(&json, "kept_by_first_uses", &leaks->first_uses, false);
	emit_amount(&json, "inherited", true, leaks->inherited_bytes, leaks->inherited_blocks);
	emit_amount(&json, "at_exec", true, leaks->exec_bytes, leaks->exec_blocks);
	torsh_parts_emit_events(&json, reading->processes, reading->n_processes);
	emit_processes(&json, view);
	torsh_parts_emit_recording(&json, reading->recording);
	torsh_parts_emit_notes(&json, reading->processes, reading->n_processes);
	torsh_parts_emit_counters(&json, reading->processes, reading->n_processes);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}
