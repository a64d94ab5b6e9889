/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/cpu/step_parts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/cpu/thread_stays.h"

const char *const torsh_step_part_names[N_STEP_PARTS] = {
#define PART(NAME, name, text) #name,
	STEP_PARTS
#undef PART
};

const char *const torsh_step_part_texts[N_STEP_PARTS] = {
#define PART(NAME, name, text) text,
	STEP_PARTS
#undef PART
};

static void see_end(void *context, struct span *span)
{
	torsh_thread_stays_end(context, span);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	(void)process;
	torsh_thread_stays_event(context, event, innermost);
}

/* ---- one thread's steps ---------------------------------------------------------------------- */

/* A step, or a part of it on a thread. */
struct section {
	uint64_t start_ns, end_ns;
	size_t step;
};

/* At at_ns one more, or one less, stays in the part. */
struct edge {
	uint64_t at_ns;
	int change;
	enum step_part part;
	bool is_own; /* of the thread */
};

static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* Waits and the collector count on the thread itself only. */
static size_t make_edges(const struct thread_stays *stays, uint32_t thread, struct edge *edges)
{
	size_t n = 0;

	for (size_t i = 0; i < stays->n; i++) {
		const struct thread_stay *stay = &stays->items[i];
		struct edge edge = {.at_ns = stay->begin_ns,
				    .change = 1,
				    .part = stay->part,
				    .is_own = stay->thread == thread};

		if (!edge.is_own && edge.part != PART_OPERATORS)
			continue;
		edges[n++] = edge;
		edge.at_ns = stay->end_ns;
		edge.change = -1;
		edges[n++] = edge;
	}
	if (n)
		qsort(edges, n, sizeof(*edges), compare_edges);
	return n;
}

struct now {
	int n[N_STEP_PARTS]; /* of the thread */
	int n_others; /* operators of other threads */
};

static enum step_part part_now(const struct now *now)
{
	if (now->n[PART_GC])
		return PART_GC;
	if (now->n[PART_DATA])
		return PART_DATA;
	if (now->n_others)
		return PART_OPERATORS;
	for (enum step_part part = PART_GIL; part <= PART_OTHER_WAITS; part++) {
		if (now->n[part])
			return part;
	}
	return now->n[PART_OPERATORS] ? PART_OPERATORS : PART_BETWEEN;
}

/* Add the time from from_ns to to_ns to the sections; *next: the first that may end after it. */
static void spend(const struct section *sections, size_t n, size_t *next, uint64_t from_ns,
		  uint64_t to_ns, enum step_part part, struct step_parts *parts)
{
	for (; *next < n && sections[*next].end_ns <= from_ns; ++*next)
		;
	for (size_t i = *next; i < n && sections[i].start_ns < to_ns; i++) {
		uint64_t begin_ns = sections[i].start_ns > from_ns ? sections[i].start_ns : from_ns,
			 end_ns = sections[i].end_ns < to_ns ? sections[i].end_ns : to_ns;

		parts[sections[i].step].ns[part] += end_ns - begin_ns;
	}
}

/* Sections are in time order, and don't overlap. */
static void walk(const struct section *sections, size_t n, uint32_t thread,
		 const struct thread_stays *stays, struct step_parts *parts)
{
	struct edge *edges = torsh_need_items(NULL, 0, 2 * stays->n + 1, sizeof(*edges));
	size_t n_edges = make_edges(stays, thread, edges), next = 0;
	struct now now = {0};
	uint64_t at_ns = 0;

	for (size_t i = 0; i <= n_edges; i++) {
		uint64_t until_ns = i < n_edges ? edges[i].at_ns : UINT64_MAX;

		if (until_ns > at_ns)
			spend(sections, n, &next, at_ns, until_ns, part_now(&now), parts);
		at_ns = until_ns;
		if (i == n_edges)
			break;
		if (edges[i].is_own)
			now.n[edges[i].part] += edges[i].change;
		else
			now.n_others += edges[i].change;
	}
	free(edges);
}

/* ---- all steps ------------------------------------------------------------------------------- */

static void walk_slices(const struct steps *steps, const struct thread_stays *stays,
			struct step_parts *parts)
{
	struct section *sections = torsh_need_items(NULL, 0, steps->n_slices, sizeof(*sections));

	for (size_t i = 0, end; i < steps->n_slices; i = end) {
		for (end = i;
		     end < steps->n_slices && steps->slices[end].thread == steps->slices[i].thread;
		     end++)
			sections[end - i] =
				(struct section){.start_ns = steps->slices[end].start_ns,
						 .end_ns = steps->slices[end].end_ns,
						 .step = steps->slices[end].step};
		walk(sections, end - i, steps->slices[i].thread, stays, parts);
	}
	free(sections);
	/* While the step waits for its turn on a thread. */
	for (size_t i = 0; i < steps->n; i++) {
		uint64_t whole_ns = steps->items[i].end_ns - steps->items[i].start_ns, sum_ns = 0;

		for (int part = 0; part < N_STEP_PARTS; part++)
			sum_ns += parts[i].ns[part];
		if (whole_ns > sum_ns)
			parts[i].ns[PART_BETWEEN] += whole_ns - sum_ns;
	}
}

static void walk_steps(const struct steps *steps, const struct thread_stays *stays,
		       size_t n_threads, struct step_parts *parts)
{
	struct section *sections = torsh_need_items(NULL, 0, steps->n, sizeof(*sections));

	for (size_t i = 0; i < steps->n; i++)
		sections[i] = (struct section){.start_ns = steps->items[i].start_ns,
					       .end_ns = steps->items[i].end_ns,
					       .step = i};
	walk(sections, steps->n, torsh_thread_stays_main(stays, steps, n_threads), stays, parts);
	free(sections);
}

struct step_parts *torsh_step_parts_find(const struct recording *recording,
					 struct recorded_process *process,
					 const struct prepass *prepass)
{
	static const struct span_visitor visitor = {.end = see_end, .event = see_event};
	const struct prepass_process *of = torsh_prepass_of(prepass, process);
	const struct steps *steps = &of->steps;
	struct step_parts *parts = torsh_need_items(NULL, 0, steps->n, sizeof(*parts));
	struct thread_stays stays = {0};
	int rc;

	if (!steps->n)
		return parts;
	rc = torsh_spans_visit(recording, &process, 1, prepass->unnested, NULL, &visitor, &stays,
			       NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	if (steps->slices)
		walk_slices(steps, &stays, parts);
	else
		walk_steps(steps, &stays, process->n_threads, parts);
	torsh_thread_stays_free(&stays);
	return parts;
}
