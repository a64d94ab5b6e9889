/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/window.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/timeline/prepass/prepass.h"

static uint64_t edge_at(const struct time_window *window, uint64_t at_ns)
{
	return window->is_exact ? 0 : WINDOW_EDGE_NS + at_ns / WINDOW_EDGE_PART;
}

static void add_span(struct time_window *window, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns >= to_ns)
		return;
	window->spans = torsh_array_reserve(window->spans, window->n, &window->n_room,
					    sizeof(*window->spans));
	window->spans[window->n++] = (struct window_span){.from_ns = from_ns, .to_ns = to_ns};
}

static int compare_spans(const void *a, const void *b)
{
	const struct window_span *x = a, *y = b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Put the spans into the order of time, and join those that overlap or touch. */
static void join_spans(struct time_window *window)
{
	size_t n = 0;

	if (!window->n)
		return;
	qsort(window->spans, window->n, sizeof(*window->spans), compare_spans);
	for (size_t i = 1; i < window->n; i++) {
		struct window_span *last = &window->spans[n], *next = &window->spans[i];

		if (next->from_ns > last->to_ns)
			window->spans[++n] = *next;
		else if (next->to_ns > last->to_ns)
			last->to_ns = next->to_ns;
	}
	window->n = n + 1;
}

/* Keep what both windows have; frees other. */
static void intersect(struct time_window *window, struct time_window *other)
{
	struct time_window both = {.is_exact = window->is_exact};
	size_t i = 0, k = 0;

	join_spans(other);
	while (i < window->n && k < other->n) {
		const struct window_span *a = &window->spans[i], *b = &other->spans[k];

		add_span(&both, a->from_ns > b->from_ns ? a->from_ns : b->from_ns,
			 a->to_ns < b->to_ns ? a->to_ns : b->to_ns);
		if (a->to_ns < b->to_ns)
			i++;
		else
			k++;
	}
	free(window->spans);
	free(other->spans);
	*window = both;
}

/* The spans and marks of a process that match the requested names. */
struct named {
	const struct windows *windows;
	struct time_window *regions;
	uint64_t *marks_ns; /* of the first mark; WINDOW_OPEN: none */
	uint64_t n_marks;
};

static size_t index_of(const struct named *named, const struct recorded_process *process)
{
	size_t i = 0;

	while (named->windows->processes[i] != process)
		i++;
	return i;
}

/* Returns true if wanted is the name, or DOMAIN/NAME. */
static bool is_named(const struct recorded_process *process, uint32_t name, uint32_t domain,
		     const char *wanted)
{
	const char *own = torsh_timeline_label(process, name);
	const char *of = torsh_timeline_label(process, domain);
	size_t n = of ? strlen(of) : 0;

	if (!own)
		return false;
	if (strcmp(own, wanted) == 0)
		return true;
	return n && strncmp(wanted, of, n) == 0 && wanted[n] == '/' &&
	       strcmp(wanted + n + 1, own) == 0;
}

static void see_end(void *context, struct span *span)
{
	struct named *named = context;
	const char *region = named->windows->request->region;

	if (span->kind == SPAN_RANGE && region &&
	    is_named(span->process, span->name, span->domain, region))
		add_span(&named->regions[index_of(named, span->process)], span->start_ns,
			 span->is_cut ? WINDOW_OPEN
				      : span->end_ns); /* a span without an end lasts */
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct named *named = context;
	const struct event_mark *mark = &event->event.mark;
	const char *since = named->windows->request->since;
	uint64_t *at_ns;

	(void)innermost;
	if (event->event.id != EVENT_MARK || !since ||
	    !is_named(process, mark->name, mark->domain, since))
		return;
	named->n_marks++;
	at_ns = &named->marks_ns[index_of(named, process)];
	if (event->at_ns < *at_ns)
		*at_ns = event->at_ns;
}

static bool is_any(const struct time_window *windows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (windows[i].n)
			return true;
	}
	return false;
}

/*
 * Returns where a window since a mark begins: at the mark, or a little before it where times are
 * not exact. A program often allocates right after its mark; a block that may be older by the
 * resolution of its time then counts, instead of being undecided.
 */
static uint64_t since_ns(const struct time_window *window, uint64_t mark_ns)
{
	uint64_t edges_ns = 2 * edge_at(window, mark_ns);

	if (mark_ns == WINDOW_OPEN)
		return WINDOW_OPEN;
	return mark_ns > edges_ns ? mark_ns - edges_ns : 0;
}

static void keep_named(struct windows *windows, const struct recording *recording)
{
	static const struct span_visitor visitor = {.end = see_end, .event = see_event};
	const struct window_request *request = windows->request;
	struct named named = {.windows = windows};
	int rc;

	named.regions = torsh_need_items(NULL, 0, windows->n, sizeof(*named.regions));
	named.marks_ns = torsh_need_items(NULL, 0, windows->n, sizeof(*named.marks_ns));
	for (size_t i = 0; i < windows->n; i++)
		named.marks_ns[i] = WINDOW_OPEN;
	rc = torsh_spans_visit(recording, windows->processes, windows->n, NULL, NULL, &visitor,
			       &named, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	if (request->region && !is_any(named.regions, windows->n))
		torsh_die("%s has no region \"%s\"; torsh regions lists them", recording->path,
			  request->region);
	if (request->since && !named.n_marks)
		torsh_die("%s has no mark \"%s\"; torsh regions lists them", recording->path,
			  request->since);
	windows->n_marks = named.n_marks;
	for (size_t i = 0; i < windows->n; i++) {
		struct time_window since = {0};

		if (request->region)
			intersect(&windows->items[i], &named.regions[i]);
		add_span(&since, since_ns(&windows->items[i], named.marks_ns[i]), WINDOW_OPEN);
		if (request->since)
			intersect(&windows->items[i], &since);
	}
	free(named.regions);
	free(named.marks_ns);
}

static void keep_steps(struct windows *windows, const struct recording *recording)
{
	struct prepass prepass;

	torsh_prepass_make(&prepass, recording, windows->processes, windows->n);
	if (!torsh_prepass_choose(&prepass, &windows->request->steps))
		torsh_die("%s has no such steps; torsh steps lists them", recording->path);
	for (size_t i = 0; i < windows->n; i++) {
		const struct steps *steps = &prepass.items[i].steps;
		struct time_window chosen = {0};

		for (size_t k = 0; k < steps->n; k++)
			add_span(&chosen, steps->items[k].start_ns, steps->items[k].end_ns);
		intersect(&windows->items[i], &chosen);
	}
	torsh_prepass_free(&prepass);
}

uint64_t torsh_age_limit(const struct age *age, const struct steps *steps, uint64_t at_ns)
{
	size_t n = 0;

	if (!age->n_steps)
		return at_ns < age->ns ? 0 : at_ns - age->ns + 1;
	while (n < steps->n && steps->items[n].start_ns <= at_ns)
		n++;
	return n < age->n_steps ? 0 : steps->items[n - age->n_steps].start_ns;
}

/* Keep what is old enough when its process ends. */
static void keep_older(struct windows *windows, const struct recording *recording)
{
	const struct age *older = &windows->request->older;
	struct prepass prepass = {0};
	bool has_steps = !older->n_steps;

	if (older->n_steps)
		torsh_prepass_make(&prepass, recording, windows->processes, windows->n);
	for (size_t i = 0; i < windows->n; i++) {
		const struct recorded_process *process = windows->processes[i];
		const struct steps *steps = older->n_steps ? &prepass.items[i].steps : NULL;
		uint64_t end_ns = process->has_live ? process->live_ns : process->end_ns;
		struct time_window old = {0};

		has_steps = has_steps || steps->n;
		add_span(&old, 0, torsh_age_limit(older, steps, end_ns));
		intersect(&windows->items[i], &old);
	}
	if (!has_steps)
		torsh_die("%s has no steps that could be counted", recording->path);
	if (older->n_steps)
		torsh_prepass_free(&prepass);
}

void torsh_windows_make(struct windows *windows, const struct window_request *request,
			const struct recording *recording,
			struct recorded_process *const *processes, size_t n_processes)
{
	*windows = (struct windows){.request = request, .processes = processes, .n = n_processes};
	windows->items = torsh_need_items(NULL, 0, n_processes, sizeof(*windows->items));
	for (size_t i = 0; i < n_processes; i++) {
		windows->items[i].is_exact = processes[i]->has_exact_times;
		add_span(&windows->items[i], request->from_ns,
			 request->to_ns ? request->to_ns : WINDOW_OPEN);
	}
	if (request->region || request->since)
		keep_named(windows, recording);
	if (request->steps.is_some)
		keep_steps(windows, recording);
	if (request->has_older)
		keep_older(windows, recording);
}

void torsh_windows_free(struct windows *windows)
{
	for (size_t i = 0; i < windows->n; i++)
		free(windows->items[i].spans);
	free(windows->items);
	*windows = (struct windows){0};
}

/* The first span that ends after the time, or n. */
static size_t span_after(const struct time_window *window, uint64_t at_ns)
{
	size_t low = 0, high = window->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (window->spans[middle].to_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool torsh_window_has(const struct time_window *window, uint64_t at_ns)
{
	size_t i = span_after(window, at_ns);

	return i < window->n && window->spans[i].from_ns <= at_ns;
}

bool torsh_window_overlaps(const struct time_window *window, uint64_t from_ns, uint64_t to_ns)
{
	size_t i = span_after(window, from_ns);

	return i < window->n && window->spans[i].from_ns < to_ns;
}

/* Returns the span that certainly contains the time, or n. */
static size_t certain_span(const struct time_window *window, uint64_t at_ns)
{
	size_t i = span_after(window, at_ns);
	const struct window_span *span = &window->spans[i];
	uint64_t edge_ns = edge_at(window, at_ns);

	if (i < window->n && (!span->from_ns || at_ns >= span->from_ns + edge_ns) &&
	    (span->to_ns == WINDOW_OPEN || at_ns + edge_ns < span->to_ns))
		return i;
	return window->n;
}

/* Returns true if no span overlaps the time from first to last. */
static bool is_outside(const struct time_window *window, uint64_t first_ns, uint64_t last_ns)
{
	uint64_t edge_ns = edge_at(window, first_ns);
	size_t i = span_after(window, first_ns > edge_ns ? first_ns - edge_ns : 0);

	return i == window->n || window->spans[i].from_ns > last_ns + edge_at(window, last_ns);
}

enum window_part torsh_window_part(const struct time_window *window, uint64_t n, uint64_t first_ns,
				   uint64_t last_ns)
{
	size_t first = certain_span(window, first_ns), last = certain_span(window, last_ns);

	if (is_outside(window, first_ns, last_ns))
		return WINDOW_HAS_NONE;
	if (first < window->n && last < window->n && (first == last || n <= 2))
		return WINDOW_HAS_ALL;
	if (n <= 2 && is_outside(window, first_ns, first_ns) &&
	    is_outside(window, last_ns, last_ns))
		return WINDOW_HAS_NONE;
	return WINDOW_HAS_SOME;
}
