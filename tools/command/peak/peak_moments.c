/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/peak/peak_moments.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/peak/moments_view.h"
#include "tools/memory/alive_for.h"
#include "tools/timeline/prepass/prepass.h"

#define TEXT_LIMIT 20
#define TEXT_LIMIT_SHRUNK 5
#define RSS_PEAK "rss-peak"
#define JOINT_PEAK "joint-peak"

bool torsh_moments_are_requested(const struct moments_request *request)
{
	return request->at.kind || request->since.kind || request->from.kind || request->to.kind ||
	       request->window.is_some || request->has_age;
}

void torsh_moment_request_parse(struct moment_request *request, const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	*request = (struct moment_request){.kind = MOMENT_OF_TIME, .name = text};
	if (end != text && !*end && seconds >= 0 && seconds < 1e10)
		request->number = (uint64_t)(seconds * 1e9);
	else if (torsh_duration_parse(text, &request->number) < 0)
		request->kind = MOMENT_OF_NAME;
}

/* ---- which moments --------------------------------------------------------------------------- */

static const struct memory_moment *find_kind(const struct memory_moments *moments,
					     enum memory_moment_kind kind)
{
	for (size_t i = 0; i < moments->n; i++) {
		if (moments->items[i].kind == kind)
			return &moments->items[i];
	}
	return NULL;
}

static const struct memory_moment *find_name(const struct memory_moments *moments, const char *name)
{
	static const enum memory_moment_kind kinds[] = {MEMORY_AT_START, MEMORY_AT_PEAK,
							MEMORY_AT_END};
	const struct memory_moment *marked = torsh_memory_moment_of_mark(moments, name);

	if (!marked && strcmp(name, RSS_PEAK) == 0)
		return torsh_memory_moment_of_rss(moments);
	for (size_t i = 0; !marked && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(torsh_memory_moment_names[kinds[i]], name) == 0)
			return find_kind(moments, kinds[i]);
	}
	return marked;
}

/* Without another choice an age is that at the peak. */
static const struct moment_request *shown_request(const struct moments_request *request)
{
	static const struct moment_request end = {.kind = MOMENT_OF_NAME, .name = "end"},
					   peak = {.kind = MOMENT_OF_NAME, .name = "peak"};

	return request->at.kind	  ? &request->at
	       : request->to.kind ? &request->to
	       : request->has_age ? &peak
				  : &end;
}

static bool is_joint(const struct moment_request *request)
{
	return request->kind == MOMENT_OF_NAME && strcmp(request->name, JOINT_PEAK) == 0;
}

static const struct memory_moment *find_moment(const struct memory_moments *moments,
					       const struct moment_request *request)
{
	switch (request->kind) {
	case MOMENT_OF_TIME:
		return torsh_memory_moment_near(moments, request->number);
	case MOMENT_OF_STEP:
		return torsh_memory_moment_of_step(moments, request->number);
	case MOMENT_OF_NAME:
		return find_name(moments, request->name);
	default:
		return NULL;
	}
}

static bool was_there(const struct recorded_process *process, const struct moment_request *request)
{
	return request->kind != MOMENT_OF_TIME ||
	       (request->number >= process->start_ns &&
		(!process->has_end_ns || request->number <= process->end_ns));
}

/* Find the time of the window's end or begin in a process; false: it has no such moment. */
static bool find_time(const struct memory_moments *moments, const struct moment_request *request,
		      uint64_t otherwise, uint64_t *at_ns)
{
	const struct memory_moment *moment;

	*at_ns = request->kind == MOMENT_OF_TIME ? request->number : otherwise;
	if (request->kind == MOMENT_OF_TIME || !request->kind)
		return true;
	moment = find_moment(moments, request);
	if (moment)
		*at_ns = moment->at_ns;
	return moment != NULL;
}

/* The sum of a window is that of its spans; all have to be exact. */
static void add_sum(struct process_moments *of, struct window_sum span)
{
	struct window_sum *sum = &of->highest;

	of->has_inexact_span = of->has_inexact_span || !span.is_exact;
	if (span.is_known && (!sum->is_known || span.bytes > sum->bytes))
		*sum = span;
	sum->is_exact = sum->is_known && !of->has_inexact_span;
}

/* Use the highest moment in a span if it is higher than the view's. */
static void choose_in_span(struct moments_view *view, struct process_moments *of, uint64_t from_ns,
			   uint64_t to_ns)
{
	const struct memory_moment *highest = torsh_memory_moment_highest(&of->all, from_ns, to_ns);

	add_sum(of, torsh_memory_window_sum(&of->all, from_ns, to_ns));
	if (!highest || (view->chosen && highest->bytes <= view->chosen->at->bytes))
		return;
	if (view->chosen)
		view->chosen->at = NULL;
	view->chosen = of;
	of->at = highest;
	view->from_ns = from_ns;
	view->to_ns = to_ns;
	view->has_peak = highest->kind == MEMORY_AT_PEAK;
}

static void choose_in_process(struct moments_view *view, struct process_moments *of,
			      const struct time_window *window)
{
	uint64_t from_ns, to_ns;

	if (!find_time(&of->all, &view->request->from, 0, &from_ns) ||
	    !find_time(&of->all, &view->request->to, UINT64_MAX, &to_ns))
		return;
	for (size_t i = 0; window && i < window->n; i++) {
		const struct window_span *span = &window->spans[i];

		choose_in_span(view, of, span->from_ns > from_ns ? span->from_ns : from_ns,
			       span->to_ns < to_ns ? span->to_ns : to_ns);
	}
	if (!window)
		choose_in_span(view, of, from_ns, to_ns);
}

/* Choose from one process only: the one with the highest moment in the window. */
static void choose_in_window(struct moments_view *view)
{
	const struct reading *reading = view->reading;
	const struct recorded_process *process;
	struct windows windows = {0};

	if (view->request->window.is_some)
		torsh_windows_make(&windows, &view->request->window, reading->recording,
				   reading->processes, reading->n_processes);
	for (size_t i = 0; i < reading->n_processes; i++)
		choose_in_process(view, &view->items[i], windows.n ? &windows.items[i] : NULL);
	torsh_windows_free(&windows);
	process = view->chosen ? view->chosen->all.process : NULL;
	for (size_t i = 0; process && i < process->n_series; i++) {
		const struct recorded_sample *sample = &process->series[i];

		if (sample->at_ns < view->from_ns || sample->at_ns >= view->to_ns ||
		    sample->heap_bytes <= view->curve_bytes)
			continue;
		view->curve_bytes = sample->heap_bytes;
		view->curve_ns = sample->at_ns;
	}
}

/* The request with the time of the process's joint peak in place of the name. */
static struct moment_request of_process(const struct process_moments *of,
					const struct moment_request *request)
{
	if (!is_joint(request) || !of->devices || !of->devices->joint.is_known)
		return *request;
	return (struct moment_request){.kind = MOMENT_OF_TIME,
				       .number = of->devices->joint.at.at_ns};
}

struct moment_request torsh_moments_request_of(const struct moments_view *view,
					       const struct process_moments *of)
{
	static const struct moment_request none;

	return view->is_window ? none : of_process(of, shown_request(view->request));
}

bool torsh_moments_is_joint(const struct process_moments *of)
{
	return of->devices && of->at && of->at->at_ns == of->devices->joint.at.at_ns &&
	       of->at->bytes == of->devices->joint.heap_bytes;
}

static void find_joint_peaks(struct moments_view *view)
{
	view->is_joint = is_joint(shown_request(view->request));
	if (!view->is_joint)
		return;
	torsh_device_reading_open(&view->devices, view->reading);
	for (size_t i = 0; i < view->reading->n_processes; i++)
		view->items[i].devices = &view->devices.memory.items[i];
}

/* of_all: also from processes that had ended by then, or not begun. */
static void choose_moments(struct moments_view *view, bool of_all)
{
	const struct moments_request *request = view->request;
	const struct moment_request *at = shown_request(request);

	for (size_t i = 0; i < view->reading->n_processes; i++) {
		struct process_moments *of = &view->items[i];
		struct moment_request own = of_process(of, at);

		if (!of_all && !was_there(of->all.process, &own))
			continue;
		of->at = find_moment(&of->all, &own);
		if (view->is_change && of->at)
			of->since = find_moment(&of->all, &request->since);
		if (view->is_change && !of->since)
			of->at = NULL;
	}
}

static bool has_some(const struct moments_view *view)
{
	for (size_t i = 0; i < view->reading->n_processes; i++) {
		if (view->items[i].at)
			return true;
	}
	return false;
}

static void refuse(const struct moments_view *view)
{
	const struct moments_request *request = view->request;
	const struct moment_request *named[] = {&request->at, &request->since, &request->from,
						&request->to};

	if (!torsh_recording_has_heaps(view->reading->processes, view->reading->n_processes))
		torsh_die("%s has no heap in it", view->reading->recording->path);
	if (view->is_joint)
		torsh_die(
			"no memory of devices was recorded: there is no joint peak of the heap and devices");
	if (request->at.kind == MOMENT_OF_NAME && strcmp(request->at.name, RSS_PEAK) == 0)
		torsh_die(
			"the resident set was not sampled, or an older version of torsh recorded this");
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
		if (named[i]->kind == MOMENT_OF_NAME)
			torsh_die(
				"no moment was kept at a mark \"%s\"; torsh regions lists the marks",
				named[i]->name);
	}
	if (view->is_window)
		torsh_die("no moment was kept in this window: --at shows the nearest one");
	torsh_die(
		"no such moment was kept: the recording has no ends of steps, or an older version of torsh made it");
}

/* ---- who held memory then -------------------------------------------------------------------- */

/* Move sites that shrank to a separate list, with the freed sizes. */
static void part_change(struct moments_view *view)
{
	struct allocation_sites *held = &view->held;
	size_t n = 0;

	for (size_t i = 0; i < held->n; i++) {
		struct allocation_site site = held->items[i];

		if ((int64_t)site.bytes > 0) {
			held->items[n++] = site;
			continue;
		}
		site.bytes = 0 - site.bytes;
		site.blocks = 0 - site.blocks;
		view->shrunk_bytes += site.bytes;
		if (site.bytes)
			torsh_sites_put(&view->shrunk, &site);
	}
	held->n = n;
}

/* Collect what has the requested age at the moment of each process. */
static void collect_aged(struct moments_view *view)
{
	const struct reading *reading = view->reading;
	const struct age *age = &view->request->age;
	struct prepass prepass;
	bool has_steps = !age->n_steps;

	torsh_prepass_make(&prepass, reading->recording, reading->processes, reading->n_processes);
	for (size_t i = 0; i < reading->n_processes; i++) {
		const struct process_moments *of = &view->items[i];
		const struct steps *steps = &prepass.items[i].steps;

		has_steps = has_steps || steps->n;
		if (of->at)
			torsh_alive_for(&view->held, &view->undecided, &of->all, of->at,
					torsh_age_limit(age, steps, of->at->at_ns));
	}
	torsh_prepass_free(&prepass);
	if (!has_steps)
		torsh_die("%s has no steps that could be counted", reading->recording->path);
	torsh_sites_sum(&view->undecided, &view->undecided_blocks, &view->undecided_bytes);
	torsh_sites_merge_stacks(&view->undecided, reading->symbols);
	torsh_sites_merge_alike(&view->undecided, reading->symbols);
}

static void collect(struct moments_view *view)
{
	const struct read_options *options = view->options;
	struct symbols *symbols = view->reading->symbols;

	view->held.depth = options->depth;
	view->undecided.depth = options->depth;
	view->held.view = view->shrunk.view = view->undecided.view = options->view;
	view->undecided.is_unmerged = options->has_depth;
	view->held.is_unmerged = options->has_depth;
	if (view->request->has_age)
		collect_aged(view);
	for (size_t i = 0; !view->request->has_age && i < view->reading->n_processes; i++) {
		const struct process_moments *of = &view->items[i];

		if (of->at && view->is_change)
			torsh_memory_moment_change(&view->held, &of->all, of->since, of->at);
		else if (of->at)
			torsh_memory_moment_sites(&view->held, &of->all, of->at);
	}
	torsh_sites_sum(&view->held, &view->blocks, &view->bytes);
	torsh_sites_merge_stacks(&view->held, symbols);
	torsh_sites_merge_alike(&view->held, symbols);
	if (view->is_change)
		part_change(view);
	view->n_held = torsh_options_choose(options, &view->held, symbols, TEXT_LIMIT);
	view->n_undecided =
		torsh_options_choose(options, &view->undecided, symbols, TEXT_LIMIT_SHRUNK);
	view->n_shrunk = torsh_options_choose(options, &view->shrunk, symbols, TEXT_LIMIT_SHRUNK);
}

void torsh_peak_moments(const struct read_options *options, const struct reading *reading,
			const struct moments_request *request)
{
	struct moments_view view = {.options = options,
				    .reading = reading,
				    .request = request,
				    .is_change = request->since.kind != MOMENT_NOT_REQUESTED};

	view.is_window = !view.is_change && !request->at.kind &&
			 (request->from.kind || request->to.kind || request->window.is_some);
	view.items = torsh_need_items(NULL, 0, reading->n_processes, sizeof(*view.items));
	for (size_t i = 0; i < reading->n_processes; i++)
		torsh_memory_moments_make(&view.items[i].all, reading->processes[i]);
	if (!view.is_window)
		find_joint_peaks(&view);
	if (view.is_window)
		choose_in_window(&view);
	else
		choose_moments(&view, false);
	if (!view.is_window && !has_some(&view))
		choose_moments(&view, true);
	if (!has_some(&view))
		refuse(&view);
	collect(&view);
	if (options->is_json)
		torsh_moments_json(&view);
	else
		torsh_moments_text(&view);
	for (size_t i = 0; i < reading->n_processes; i++)
		torsh_memory_moments_free(&view.items[i].all);
	free(view.items);
	if (view.is_joint)
		torsh_device_reading_close(&view.devices);
	torsh_sites_free(&view.held);
	torsh_sites_free(&view.shrunk);
	torsh_sites_free(&view.undecided);
}
