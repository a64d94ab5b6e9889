/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/selection.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/report/parts.h"

#define RANGES_SHOWN 8u
#define RANGES_IN_JSON 1000u

/* Returns the end of the range of consecutive numbers that begins with step i. */
static size_t end_of_range(const struct steps *steps, size_t i)
{
	for (i++; i < steps->n && steps->items[i].number == steps->items[i - 1].number + 1; i++)
		;
	return i;
}

static char *schedule_text(const struct schedule *schedule)
{
	return torsh_need_text("skip:%u,wait:%u,warmup:%u,active:%u,repeat:%u", schedule->skip,
			       schedule->wait, schedule->warmup, schedule->active,
			       schedule->repeat);
}

static void print_ranges(FILE *out, const struct steps *steps)
{
	size_t n = 0, end = 0;

	for (size_t i = 0; i < steps->n && n < RANGES_SHOWN; n++) {
		end = end_of_range(steps, i);
		fprintf(out, "%s%" PRIu64, n ? ", " : ": ", steps->items[i].number);
		if (end - i > 1)
			fprintf(out, "-%" PRIu64, steps->items[end - 1].number);
		i = end;
	}
	if (end < steps->n)
		fprintf(out, " and %zu more", steps->n - end);
}

/* NULL: there is no schedule, or the program kept to it. */
static char *unkept_note(const struct prepass_process *of)
{
	char *schedule, *note;

	if (!of->steps.schedule.active || of->steps.is_scheduled)
		return NULL;
	schedule = schedule_text(&of->steps.schedule);
	note = torsh_need_text(
		"the schedule %s was not applied in process %" PRIu32
		": neither the program, nor torch.profiler, nor an optimizer marked its steps, so all of "
		"it was recorded",
		schedule, of->process->pid);
	free(schedule);
	return note;
}

void torsh_selection_text(FILE *out, const struct prepass *prepass)
{
	for (size_t i = 0; i < prepass->n; i++) {
		const struct prepass_process *of = &prepass->items[i];
		char *schedule = schedule_text(&of->steps.schedule), *note = unkept_note(of);
		char all[SIZE_TEXT_BYTES];

		if (note)
			fprintf(out, "note: %s\n", note);
		if (of->steps.is_restricted) {
			fprintf(out, "%zu of %s of process %" PRIu32 " count%s here%s%s",
				of->steps.n, torsh_size_counted(of->steps.n_all, "step", all),
				of->process->pid, of->steps.n == 1 ? "s" : "",
				of->steps.is_scheduled ? ", by the schedule " : "",
				of->steps.is_scheduled ? schedule : "");
			print_ranges(out, &of->steps);
			putc('\n', out);
		}
		free(schedule);
		free(note);
	}
	if (prepass->windows)
		torsh_selection_windows_text(out, prepass->windows);
}

static void emit_ranges(struct json_writer *json, const struct steps *steps)
{
	size_t n = 0;

	torsh_json_begin_array(json, "ranges");
	for (size_t i = 0; i < steps->n && n < RANGES_IN_JSON; n++) {
		size_t end = end_of_range(steps, i);

		torsh_json_begin_array(json, NULL);
		torsh_json_put_u64(json, NULL, steps->items[i].number);
		torsh_json_put_u64(json, NULL, steps->items[end - 1].number);
		torsh_json_end_array(json);
		i = end;
	}
	torsh_json_end_array(json);
}

static void emit_schedule(struct json_writer *json, const struct steps *steps)
{
	if (!steps->is_scheduled) {
		torsh_json_put_null(json, "schedule");
		return;
	}
	torsh_json_begin_object(json, "schedule");
	torsh_json_put_u64(json, "skip", steps->schedule.skip);
	torsh_json_put_u64(json, "wait", steps->schedule.wait);
	torsh_json_put_u64(json, "warmup", steps->schedule.warmup);
	torsh_json_put_u64(json, "active", steps->schedule.active);
	torsh_json_put_u64(json, "repeat", steps->schedule.repeat);
	torsh_json_end_object(json);
}

static void emit_selection(struct json_writer *json, const struct prepass *prepass)
{
	torsh_json_begin_array(json, "selection");
	for (size_t i = 0; i < prepass->n; i++) {
		const struct prepass_process *of = &prepass->items[i];

		if (!of->steps.is_restricted)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "pid", of->process->pid);
		torsh_json_put_text(json, "rule", torsh_step_rule_names[of->steps.rule]);
		torsh_json_put_u64(json, "steps", of->steps.n_all);
		torsh_json_put_u64(json, "shown", of->steps.n);
		emit_ranges(json, &of->steps);
		emit_schedule(json, &of->steps);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_notes(struct json_writer *json, struct recorded_process *const *processes,
		       size_t n_processes, const struct prepass *prepass)
{
	torsh_json_begin_array(json, "notes");
	torsh_parts_emit_note_items(json, processes, n_processes);
	for (size_t i = 0; i < prepass->n; i++) {
		char *note = unkept_note(&prepass->items[i]);

		if (note)
			torsh_json_put_text(json, NULL, note);
		free(note);
	}
	torsh_json_end_array(json);
}

void torsh_selection_members(struct json_writer *json, struct recorded_process *const *processes,
			     size_t n_processes, const struct prepass *prepass)
{
	emit_selection(json, prepass);
	if (prepass->windows)
		torsh_selection_windows_json(json, prepass->windows);
	emit_notes(json, processes, n_processes, prepass);
}

/* Sums of spans over all processes. */
struct spans_sum {
	uint64_t n, from_ns, to_ns, total_ns;
};

static struct spans_sum sum_spans(const struct windows *windows)
{
	struct spans_sum sum = {.from_ns = UINT64_MAX};

	for (size_t i = 0; i < windows->n; i++) {
		const struct time_window *window = &windows->items[i];

		for (size_t k = 0; k < window->n; k++) {
			const struct window_span *span = &window->spans[k];

			sum.n++;
			sum.total_ns += span->to_ns - span->from_ns;
			sum.from_ns = span->from_ns < sum.from_ns ? span->from_ns : sum.from_ns;
			sum.to_ns = span->to_ns > sum.to_ns ? span->to_ns : sum.to_ns;
		}
	}
	return sum;
}

static void print_request(FILE *out, const struct windows *windows)
{
	const struct window_request *request = windows->request;
	char times[SIZE_TEXT_BYTES];

	if (request->steps.is_some && request->steps.first == request->steps.last)
		fprintf(out, ", step %" PRIu64, request->steps.first);
	else if (request->steps.is_some)
		fprintf(out, ", steps %" PRIu64 " to %" PRIu64, request->steps.first,
			request->steps.last);
	if (request->region)
		fprintf(out, ", region %s", request->region);
	if (request->since)
		fprintf(out, ", since mark %s", request->since);
	if (request->has_older && request->older.n_steps)
		fprintf(out, ", from before the last %s",
			torsh_size_counted(request->older.n_steps, "step", times));
	else if (request->has_older)
		fprintf(out, ", at least %s old at the end",
			torsh_size_duration(request->older.ns, times));
	if (windows->n_marks > 1)
		fprintf(out, " (the first of %s)",
			torsh_size_counted(windows->n_marks, "mark", times));
}

void torsh_selection_windows_text(FILE *out, const struct windows *windows)
{
	struct spans_sum sum = sum_spans(windows);
	char from[SIZE_TEXT_BYTES], to[SIZE_TEXT_BYTES], spans[SIZE_TEXT_BYTES];

	if (!sum.n) {
		fputs("window: empty", out);
	} else {
		fprintf(out, "window: %s to %s", torsh_size_duration(sum.from_ns, from),
			sum.to_ns == WINDOW_OPEN ? "the end" : torsh_size_duration(sum.to_ns, to));
		if (sum.n > 1)
			fprintf(out, ", %s of it", torsh_size_counted(sum.n, "span", spans));
		if (sum.n > 1 && sum.to_ns != WINDOW_OPEN)
			fprintf(out, " with %s", torsh_size_duration(sum.total_ns, to));
	}
	print_request(out, windows);
	putc('\n', out);
}

static void emit_spans(struct json_writer *json, const struct time_window *window)
{
	torsh_json_begin_array(json, "spans");
	for (size_t i = 0; i < window->n && i < RANGES_IN_JSON; i++) {
		uint64_t to_ns = window->spans[i].to_ns;

		torsh_json_begin_array(json, NULL);
		torsh_json_put_u64(json, NULL, window->spans[i].from_ns);
		torsh_json_put_known(json, NULL, to_ns != WINDOW_OPEN, to_ns);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "omitted_spans",
			   window->n > RANGES_IN_JSON ? window->n - RANGES_IN_JSON : 0);
}

void torsh_selection_windows_json(struct json_writer *json, const struct windows *windows)
{
	const struct window_request *request = windows->request;

	torsh_json_begin_object(json, "window");
	torsh_json_put_u64(json, "from_ns", request->from_ns);
	torsh_json_put_known(json, "to_ns", request->to_ns, request->to_ns);
	torsh_json_put_known(json, "first_step", request->steps.is_some, request->steps.first);
	torsh_json_put_known(json, "last_step", request->steps.is_some, request->steps.last);
	torsh_json_put_text(json, "region", request->region);
	torsh_json_put_text(json, "since", request->since);
	torsh_json_put_known(json, "marks", request->since, windows->n_marks);
	torsh_json_put_known(json, "older_than_ns", request->has_older && !request->older.n_steps,
			     request->older.ns);
	torsh_json_put_known(json, "older_than_steps", request->has_older && request->older.n_steps,
			     request->older.n_steps);
	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < windows->n; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "pid", windows->processes[i]->pid);
		emit_spans(json, &windows->items[i]);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}
