/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The timelines of the page, collected in one pass: the spans of a few steps (the median one, the
 * slowest and the last), or of the whole run if no steps are known; those around the times that
 * show findings; and the memory of tensors on each device.
 */
#include <stdlib.h>

#include "tools/analysis/analysis.h"
#include "tools/base/containers/array.h"
#include "tools/base/device.h"
#include "tools/base/die.h"
#include "tools/export/html/html_page.h"
#include "tools/memory/tensors.h"

#define SPANS 4000u /* per window */
#define SPANS_SERVED 20000u /* for a window that is requested separately */
#define BUCKETS 1000u /* per curve */
#define SPANS_OF_FINDING 1000u
#define STEPS_MAX 3u
#define FINDINGS_MAX 24u /* that have a window */
#define WINDOWS_MAX (STEPS_MAX + FINDINGS_MAX)
#define AROUND_NS_MIN 100000u /* on each side of what shows a finding */
#define CURVES_MAX 32u

/* The kind of a row of the timeline, which selects its colour. */
enum row_kind { ROW_OPERATOR, ROW_MODULE, ROW_RANGE, ROW_CALL, ROW_DEVICE, ROW_GC };

struct row {
	uint64_t start_ns, duration_ns;
	const char *name; /* owned by the recording */
	uint32_t lane; /* index of a thread, or of a device's stream */
	uint32_t device;
	enum row_kind kind;
};

struct window {
	const char *title;
	const struct recorded_process *process;
	size_t finding; /* its number + 1; 0: none */
	bool is_step;
	uint64_t step, from_ns, to_ns;
	struct row *rows;
	size_t n, n_room;
};

/* Memory of tensors on one device: the maximum in each bucket of time. */
struct curve {
	const struct recorded_process *process;
	uint32_t device;
	bool has_sums; /* the allocator reported them */
	uint64_t bytes, allocated[BUCKETS], reserved[BUCKETS];
	bool is_set[BUCKETS];
};

struct html_timeline {
	const struct trace *trace;
	struct window windows[WINDOWS_MAX];
	size_t n_windows;
	struct curve **curves;
	size_t n_curves, curves_room;
	uint64_t from_ns, to_ns; /* the range of the curves */
};

/* ---- which windows --------------------------------------------------------------------------- */

static void add_window(struct html_timeline *timeline, const char *title,
		       const struct prepass_process *of, const struct step *step)
{
	for (size_t i = 0; i < timeline->n_windows; i++) {
		if (step && timeline->windows[i].step == step->number)
			return;
	}
	timeline->windows[timeline->n_windows++] = (struct window){
		.title = title,
		.process = of->process,
		.is_step = step != NULL,
		.step = step ? step->number : 0,
		.from_ns = step ? step->start_ns : of->first_ns,
		.to_ns = step ? step->end_ns : of->last_ns + 1,
	};
}

static int compare_steps(const void *a, const void *b)
{
	const struct step *x = *(const struct step *const *)a, *y = *(const struct step *const *)b;
	uint64_t x_ns = x->end_ns - x->start_ns, y_ns = y->end_ns - y->start_ns;

	return (x_ns > y_ns) - (x_ns < y_ns);
}

static void choose_steps(struct html_timeline *timeline, const struct prepass_process *of)
{
	const struct steps *steps = &of->steps;
	const struct step **sorted = torsh_need_items(NULL, 0, steps->n, sizeof(*sorted));

	for (size_t i = 0; i < steps->n; i++)
		sorted[i] = &steps->items[i];
	qsort(sorted, steps->n, sizeof(*sorted), compare_steps);
	add_window(timeline, "median", of, sorted[steps->n / 2]);
	add_window(timeline, "slowest", of, sorted[steps->n - 1]);
	add_window(timeline, "last", of, &steps->items[steps->n - 1]);
	free(sorted);
}

/* Choose windows in the process with most steps, or without steps with most events. */
static void choose_windows(struct html_timeline *timeline)
{
	const struct prepass *prepass = timeline->trace->prepass;
	const struct prepass_process *most = NULL;

	for (size_t i = 0; i < prepass->n; i++) {
		const struct prepass_process *of = &prepass->items[i];

		if (of->has_events &&
		    (!most || of->steps.n > most->steps.n ||
		     (of->steps.n == most->steps.n && of->n_operators > most->n_operators)))
			most = of;
		if (!of->has_events)
			continue;
		if (!timeline->to_ns || of->first_ns < timeline->from_ns)
			timeline->from_ns = of->first_ns;
		if (of->last_ns >= timeline->to_ns)
			timeline->to_ns = of->last_ns + 1;
	}
	if (most && most->steps.n)
		choose_steps(timeline, most);
	else if (most && most->n_operators + most->n_ranges + most->n_modules)
		add_window(timeline, "whole run", most, NULL);
}

static void add_finding(struct html_timeline *timeline, const struct finding *finding, size_t i)
{
	uint64_t around_ns = 2 * (finding->until_ns - finding->from_ns);

	if (around_ns < AROUND_NS_MIN)
		around_ns = AROUND_NS_MIN;
	timeline->windows[timeline->n_windows++] = (struct window){
		.title = "finding",
		.process = finding->process,
		.finding = i + 1,
		.from_ns = finding->from_ns > around_ns ? finding->from_ns - around_ns : 0,
		.to_ns = finding->until_ns + around_ns,
	};
}

static void choose_findings(struct html_page *page)
{
	const struct finding *finding;
	size_t n = 0;

	for (size_t i = 0; n < FINDINGS_MAX && (finding = torsh_html_finding(page, i)); i++) {
		if (!finding->until_ns)
			continue;
		add_finding(page->timeline, finding, i);
		n++;
	}
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void add_row(struct html_timeline *timeline, const struct recorded_process *process,
		    const struct row *row)
{
	for (size_t i = 0; i < timeline->n_windows; i++) {
		struct window *window = &timeline->windows[i];

		if (window->process != process || row->start_ns >= window->to_ns ||
		    row->start_ns + row->duration_ns <= window->from_ns)
			continue;
		window->rows = torsh_array_reserve(window->rows, window->n, &window->n_room,
						   sizeof(*window->rows));
		window->rows[window->n++] = *row;
	}
}

static void see_end(void *context, struct span *span)
{
	add_row(context, span->process,
		&(struct row){.start_ns = span->start_ns,
			      .duration_ns = span->end_ns - span->start_ns,
			      .name = torsh_span_name(span),
			      .lane = span->thread,
			      .kind = span->is_module		 ? ROW_MODULE
				      : span->kind == SPAN_RANGE ? ROW_RANGE
								 : ROW_OPERATOR});
}

static void add_gc(struct html_timeline *timeline, const struct recorded_process *process,
		   const struct timeline_event *event)
{
	const struct event_python_gc *run = &event->event.python_gc;

	add_row(timeline, process,
		&(struct row){.start_ns = run->begin,
			      .duration_ns = run->duration_ns,
			      .name = torsh_trace_gc_name(run),
			      .lane = event->thread,
			      .kind = ROW_GC});
}

/* NULL: there are too many. */
static struct curve *curve_of(struct html_timeline *timeline,
			      const struct recorded_process *process, uint32_t device)
{
	for (size_t i = 0; i < timeline->n_curves; i++) {
		if (timeline->curves[i]->process == process &&
		    timeline->curves[i]->device == device)
			return timeline->curves[i];
	}
	if (timeline->n_curves == CURVES_MAX)
		return NULL;
	timeline->curves = torsh_array_reserve(timeline->curves, timeline->n_curves,
					       &timeline->curves_room, sizeof(*timeline->curves));
	timeline->curves[timeline->n_curves] = torsh_need(calloc(1, sizeof(struct curve)));
	*timeline->curves[timeline->n_curves] =
		(struct curve){.process = process, .device = device};
	return timeline->curves[timeline->n_curves++];
}

static void add_tensor(struct html_timeline *timeline, const struct recorded_process *process,
		       const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct curve *curve;
	uint64_t whole_ns = timeline->to_ns - timeline->from_ns;
	size_t at;

	if (event->at_ns < timeline->from_ns || !whole_ns)
		return;
	curve = curve_of(timeline, process, tensor->device);
	if (!curve)
		return;
	if (!tensor->is_free)
		curve->bytes += tensor->bytes;
	else
		curve->bytes -= tensor->bytes < curve->bytes ? tensor->bytes : curve->bytes;
	curve->has_sums = torsh_tensor_has_sums(tensor);
	at = (size_t)((double)(event->at_ns - timeline->from_ns) / (double)whole_ns * BUCKETS);
	if (at >= BUCKETS)
		return;
	curve->is_set[at] = true;
	if (curve->bytes > curve->allocated[at])
		curve->allocated[at] = curve->bytes;
	if (tensor->reserved > curve->reserved[at])
		curve->reserved[at] = tensor->reserved;
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	(void)innermost;
	if (event->event.id == EVENT_PYTHON_GC)
		add_gc(context, process, event);
	else if (event->event.id == EVENT_TENSOR)
		add_tensor(context, process, event);
}

static void see_event_of_window(void *context, const struct recorded_process *process,
				const struct timeline_event *event, struct span *innermost)
{
	(void)innermost;
	if (event->event.id == EVENT_PYTHON_GC)
		add_gc(context, process, event);
}

static void see_activity(void *context, const struct device_activity *activity)
{
	const struct activity_record *record = &activity->record;
	const char *name = record->what == DEVICE_KERNEL
				   ? torsh_timeline_label(activity->process, record->name)
			   : record->what == DEVICE_COPY ? torsh_copy_name(record->kind)
							 : torsh_device_what_names[record->what];

	if (record->is_timed)
		add_row(context, activity->process,
			&(struct row){.start_ns = record->begin_ns,
				      .duration_ns = record->duration_ns,
				      .name = name ? name : "?",
				      .lane = record->stream,
				      .device = record->device,
				      .kind = ROW_DEVICE});
}

static void see_call(void *context, const struct recorded_process *process,
		     const struct device_launch *call)
{
	const char *name = torsh_timeline_label(process, call->api);

	add_row(context, process,
		&(struct row){.start_ns = call->shown_ns,
			      .duration_ns = call->shown_end_ns > call->shown_ns
						     ? call->shown_end_ns - call->shown_ns
						     : 0,
			      .name = name ? name : "?",
			      .lane = call->thread,
			      .kind = ROW_CALL});
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->duration_ns < y->duration_ns) - (x->duration_ns > y->duration_ns);
}

static void fill(struct html_timeline *timeline, struct trace *trace,
		 const struct span_visitor *visitor)
{
	static const struct device_visitor devices = {
		.activity = see_activity, .launch = see_call, .call = see_call};

	if (torsh_trace_walk(trace, visitor, &devices, timeline) < 0)
		torsh_die("%s cannot be read", trace->recording->path);
	for (size_t i = 0; i < timeline->n_windows; i++) {
		struct window *window = &timeline->windows[i];

		if (window->n)
			qsort(window->rows, window->n, sizeof(*window->rows), compare_rows);
	}
}

void torsh_html_timeline_collect(struct html_page *page)
{
	static const struct span_visitor visitor = {.end = see_end, .event = see_event};
	struct html_timeline *timeline = page->timeline = torsh_need(calloc(1, sizeof(*timeline)));

	timeline->trace = page->trace;
	choose_windows(timeline);
	choose_findings(page);
	if (timeline->to_ns)
		fill(timeline, page->trace, &visitor);
}

void torsh_html_window_collect(struct html_page *page, size_t process, uint64_t from_ns,
			       uint64_t to_ns)
{
	static const struct span_visitor visitor = {.end = see_end, .event = see_event_of_window};
	struct html_timeline *timeline = page->timeline = torsh_need(calloc(1, sizeof(*timeline)));

	timeline->trace = page->trace;
	timeline->windows[timeline->n_windows++] =
		(struct window){.title = "window",
				.process = page->trace->processes[process],
				.from_ns = from_ns,
				.to_ns = to_ns};
	fill(timeline, page->trace, &visitor);
}

void torsh_html_timeline_free(struct html_page *page)
{
	struct html_timeline *timeline = page->timeline;

	for (size_t i = 0; i < timeline->n_windows; i++)
		free(timeline->windows[i].rows);
	for (size_t i = 0; i < timeline->n_curves; i++)
		free(timeline->curves[i]);
	free(timeline->curves);
	free(timeline);
}

/* ---- the document ---------------------------------------------------------------------------- */

/* [kind, lane, name, start after the window's, duration, device] */
static void put_row(struct html_page *page, const struct window *window, const struct row *row)
{
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, NULL);
	torsh_json_put_u64(json, NULL, row->kind);
	torsh_json_put_u64(json, NULL,
			   row->kind == ROW_DEVICE ? row->lane
						   : torsh_trace_tid(window->process, row->lane));
	torsh_html_put_text(page, NULL,
			    row->kind == ROW_DEVICE
				    ? torsh_symbols_demangle(page->trace->symbols, row->name)
				    : row->name);
	torsh_json_put_i64(json, NULL, (int64_t)row->start_ns - (int64_t)window->from_ns);
	torsh_json_put_u64(json, NULL, row->duration_ns);
	torsh_json_put_u64(json, NULL, row->device);
	torsh_json_end_array(json);
}

static void put_window(struct html_page *page, const struct window *window)
{
	struct json_writer *json = &page->json;
	size_t n = page->is_whole    ? SPANS_SERVED
		   : window->finding ? torsh_html_limit(page, SPANS_OF_FINDING)
				     : torsh_html_limit(page, SPANS);

	n = n < window->n ? n : window->n;
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "title", window->title);
	torsh_json_put_u64(json, "process", torsh_html_process(page, window->process));
	torsh_json_put_known(json, "step", window->is_step, window->step);
	torsh_json_put_known(json, "finding", window->finding, window->finding);
	torsh_json_put_u64(json, "from_ns", window->from_ns);
	torsh_json_put_u64(json, "duration_ns", window->to_ns - window->from_ns);
	torsh_json_put_u64(json, "omitted", window->n - n);
	torsh_json_begin_array(json, "rows");
	for (size_t i = 0; i < n; i++)
		put_row(page, window, &window->rows[i]);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void put_curve(struct html_page *page, const struct curve *curve, const uint64_t *values,
		      bool is_tensors)
{
	const struct html_timeline *timeline = page->timeline;
	double width_us = (double)(timeline->to_ns - timeline->from_ns) / BUCKETS / 1000;
	struct json_writer *json = &page->json;
	char device[DEVICE_NAME_BYTES];

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "process", torsh_html_process(page, curve->process));
	torsh_json_put_format(json, "name", "%s %s", is_tensors ? "tensors on" : "reserved on",
			      torsh_device_name(curve->device, device));
	torsh_json_put_bool(json, "is_tensors", is_tensors);
	torsh_json_begin_array(json, "points");
	for (size_t i = 0; i < BUCKETS; i++) {
		if (!curve->is_set[i])
			continue;
		torsh_json_begin_array(json, NULL);
		torsh_json_put_u64(json, NULL,
				   timeline->from_ns / 1000 + (uint64_t)((double)i * width_us));
		torsh_json_put_u64(json, NULL, values[i]);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

void torsh_html_window_put(struct html_page *page)
{
	const struct html_timeline *timeline = page->timeline;

	torsh_json_begin_array(&page->json, "windows");
	for (size_t i = 0; i < timeline->n_windows; i++)
		put_window(page, &timeline->windows[i]);
	torsh_json_end_array(&page->json);
}

void torsh_html_timeline_put(struct html_page *page)
{
	const struct html_timeline *timeline = page->timeline;

	torsh_html_window_put(page);
	torsh_json_begin_array(&page->json, "tensor_curves");
	for (size_t i = 0; i < timeline->n_curves; i++) {
		const struct curve *curve = timeline->curves[i];

		put_curve(page, curve, curve->allocated, true);
		if (curve->has_sums)
			put_curve(page, curve, curve->reserved, false);
	}
	torsh_json_end_array(&page->json);
}
