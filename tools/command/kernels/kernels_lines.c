/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/kernels/kernels_lines.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/size.h"
#include "tools/frames/short_name.h"
#include "tools/symbols/cuda_frames.h"

#define LINES_SHOWN 3

/* Stacks with the same line. */
struct shown_line {
	const struct frame *frame;
	bool is_captured;
	uint64_t calls, timed, total_ns;
};

struct shown_lines {
	struct shown_line *items;
	size_t n, n_room;
};

static bool is_of(const struct recorded_process *process, const struct kernel_line *line,
		  const struct kernel_row *row)
{
	const char *label;

	if (line->what != row->what)
		return false;
	if (row->what == DEVICE_COPY)
		return strcmp(torsh_copy_name(line->name), row->name) == 0;
	if (row->what != DEVICE_KERNEL)
		return true;
	label = torsh_timeline_label(process, line->name);
	return strcmp(label && *label ? label : "?", row->name) == 0;
}

/* Texts of frames are interned: equal texts have equal pointers. */
static bool is_same_place(const struct frame *a, const struct frame *b)
{
	return a->function == b->function && a->file == b->file && a->line == b->line &&
	       a->module == b->module;
}

static struct shown_line *find_line(struct shown_lines *lines, const struct frame *frame,
				    bool is_captured)
{
	for (size_t i = 0; i < lines->n; i++) {
		if (lines->items[i].is_captured == is_captured &&
		    is_same_place(lines->items[i].frame, frame))
			return &lines->items[i];
	}
	lines->items =
		torsh_array_reserve(lines->items, lines->n, &lines->n_room, sizeof(*lines->items));
	lines->items[lines->n] = (struct shown_line){.frame = frame, .is_captured = is_captured};
	return &lines->items[lines->n++];
}

static int compare_lines(const void *a, const void *b)
{
	const struct shown_line *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return (x->calls < y->calls) - (x->calls > y->calls);
}

/* Collect lines, the longest first. Returns their number of calls. */
static uint64_t collect(struct shown_lines *lines, const struct kernels *kernels,
			const struct kernel_row *row, struct symbols *symbols)
{
	uint64_t n_calls = 0;

	for (size_t i = 0; i < kernels->n_processes; i++) {
		const struct kernel_process *process = &kernels->processes[i];

		for (size_t k = 0; k < process->lines.n; k++) {
			const struct kernel_line *line = &process->lines.items[k];
			const struct frame *frame;
			struct shown_line *shown;

			if (!is_of(process->process, line, row))
				continue;
			frame = torsh_cuda_frames_line(process->process, line->stack, symbols);
			if (!frame)
				continue;
			shown = find_line(lines, frame, line->is_captured);
			shown->calls += line->calls;
			shown->timed += line->timed;
			shown->total_ns += line->total_ns;
			n_calls += line->calls;
		}
	}
	if (lines->n)
		qsort(lines->items, lines->n, sizeof(*lines->items), compare_lines);
	return n_calls;
}

static void emit_line(struct json_writer *json, const struct shown_line *line)
{
	const struct frame *frame = line->frame;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "function", frame->function);
	torsh_json_put_text(json, "file", frame->file);
	torsh_json_put_known(json, "line", frame->line, (uint64_t)frame->line);
	torsh_json_put_text(json, "module", frame->module);
	torsh_json_put_bool(json, "captured", line->is_captured);
	torsh_json_put_u64(json, "calls", line->calls);
	torsh_json_put_known(json, "total_ns", line->timed, line->total_ns);
	torsh_json_end_object(json);
}

void torsh_kernels_emit_lines(struct json_writer *json, const struct kernels *kernels,
			      const struct kernel_row *row, uint64_t n_calls,
			      struct symbols *symbols)
{
	struct shown_lines lines = {0};
	uint64_t n_known = collect(&lines, kernels, row, symbols);

	torsh_json_begin_array(json, "lines");
	for (size_t i = 0; i < lines.n; i++)
		emit_line(json, &lines.items[i]);
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "calls_without_line", n_calls - n_known);
	free(lines.items);
}

void torsh_kernels_put_lines(struct table *table, const struct kernels *kernels,
			     const struct kernel_row *row, struct symbols *symbols)
{
	struct shown_lines lines = {0};
	char calls[SIZE_TEXT_BYTES], total[SIZE_TEXT_BYTES];

	collect(&lines, kernels, row, symbols);
	for (size_t i = 0; i < lines.n && i < LINES_SHOWN; i++) {
		const struct shown_line *line = &lines.items[i];
		char *function = torsh_short_frame(line->frame);
		char *place = torsh_short_place(line->frame, torsh_working_directory());

		torsh_table_note(table, "%s%s%s %s at %s, %s",
				 torsh_size_counted(line->calls, "call", calls),
				 line->timed ? ", " : "",
				 line->timed ? torsh_size_duration(line->total_ns, total) : "",
				 line->is_captured ? "captured" : "launched", function, place);
		free(function);
		free(place);
	}
	if (lines.n > LINES_SHOWN)
		torsh_table_note(table, "... and %s",
				 torsh_size_counted(lines.n - LINES_SHOWN, "more line", calls));
	free(lines.items);
}
