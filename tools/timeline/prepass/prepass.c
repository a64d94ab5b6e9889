/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/prepass/prepass.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/timeline/steps/step_finder.h"
#include "tools/timeline/window.h"

const struct prepass_process *torsh_prepass_of(const struct prepass *prepass,
					       const struct recorded_process *process)
{
	for (size_t i = 0; i < prepass->n; i++) {
		if (prepass->items[i].process == process)
			return &prepass->items[i];
	}
	return NULL;
}

static struct prepass_process *item_of(struct prepass *prepass,
				       const struct recorded_process *process)
{
	return (struct prepass_process *)torsh_prepass_of(prepass, process);
}

/* The process, which did something then. */
static struct prepass_process *find(struct prepass *prepass, const struct recorded_process *process,
				    uint64_t at_ns)
{
	struct prepass_process *of = item_of(prepass, process);

	if (!of->has_events || at_ns < of->first_ns)
		of->first_ns = at_ns;
	if (at_ns > of->last_ns)
		of->last_ns = at_ns;
	of->has_events = true;
	return of;
}

static void see_begin(void *context, struct span *span)
{
	struct prepass *prepass = context;
	struct prepass_process *of = find(prepass, span->process, span->start_ns);

	of->n_operators += span->kind == SPAN_OPERATOR;
	/* A damaged file may name any thread. */
	if (span->kind == SPAN_OPERATOR && span->thread < span->process->n_threads)
		torsh_process_counts_operator(&of->counts, span->thread);
	of->n_modules += span->is_module;
	of->n_ranges += span->kind == SPAN_RANGE && !span->is_module;
	prepass->has_inputs = prepass->has_inputs || span->inputs;
	prepass->has_stacks = prepass->has_stacks || span->stack;
	torsh_data_workers_add(prepass->data_workers, span);
	torsh_pass_finder_begin(of->passes, span);
	torsh_step_finder_begin(of->finder, span);
}

static void see_end(void *context, struct span *span)
{
	struct prepass_process *of = find(context, span->process, span->end_ns);

	torsh_pass_finder_end(of->passes, span);
	torsh_step_finder_end(of->finder, span);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct prepass_process *of;

	/* The writer inserts these: nothing happened in the program. */
	if (event->event.id == EVENT_HEAP_MARK)
		return;
	if (torsh_timeline_is_background(&event->event)) {
		torsh_process_attributes_add(&item_of(context, process)->facts, process,
					     &event->event);
		torsh_process_counts_take(&item_of(context, process)->counts, process, event);
		return;
	}
	of = find(context, process, event->at_ns);
	of->n_tensors += event->event.id == EVENT_TENSOR;
	torsh_step_finder_event(of->finder, event);
	torsh_device_work_add(&of->work, &event->event, innermost);
	torsh_device_list_add(&of->devices, &event->event);
}

void torsh_prepass_make(struct prepass *prepass, const struct recording *recording,
			struct recorded_process *const *processes, size_t n_processes)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event};
	int rc;

	*prepass = (struct prepass){.n = n_processes, .unnested = torsh_unnested_spans_create()};
	prepass->data_workers = torsh_data_workers_create(recording);
	prepass->items = torsh_need_items(NULL, 0, n_processes, sizeof(*prepass->items));
	for (size_t i = 0; i < n_processes; i++) {
		prepass->items[i].process = processes[i];
		prepass->items[i].finder = torsh_step_finder_create();
		prepass->items[i].passes = torsh_pass_finder_create();
		torsh_device_work_create(&prepass->items[i].work);
		torsh_process_counts_create(&prepass->items[i].counts);
	}
	rc = torsh_spans_visit(recording, processes, n_processes, NULL, prepass->unnested, &visitor,
			       prepass, &prepass->counts);
	if (rc == 0)
		rc = torsh_data_workers_decide(prepass->data_workers, processes, n_processes);
	torsh_data_workers_destroy(prepass->data_workers);
	prepass->data_workers = NULL;
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	for (size_t i = 0; i < n_processes; i++) {
		struct prepass_process *of = &prepass->items[i];

		torsh_pass_finder_decide(of->passes, processes[i]);
		torsh_pass_finder_destroy(of->passes);
		of->passes = NULL;
		torsh_step_finder_decide(of->finder, of->last_ns, processes[i], &of->steps);
		torsh_step_finder_destroy(of->finder);
		of->finder = NULL;
	}
}

size_t torsh_prepass_choose(struct prepass *prepass, const struct steps_choice *choice)
{
	size_t n = 0;

	for (size_t i = 0; i < prepass->n; i++) {
		torsh_steps_choose(&prepass->items[i].steps, choice);
		n += prepass->items[i].steps.n;
	}
	return n;
}

void torsh_prepass_restrict(struct prepass *prepass, const struct windows *windows)
{
	prepass->windows = windows;
	for (size_t i = 0; i < prepass->n; i++)
		torsh_steps_restrict(&prepass->items[i].steps, &windows->items[i]);
}

bool torsh_prepass_has(const struct prepass *prepass, const struct recorded_process *process,
		       uint64_t at_ns)
{
	return torsh_steps_have(&torsh_prepass_of(prepass, process)->steps, at_ns);
}

enum step_rule torsh_prepass_step_rule(const struct prepass *prepass)
{
	enum step_rule best = STEPS_BY_NONE;

	for (size_t i = 0; i < prepass->n; i++) {
		enum step_rule rule = prepass->items[i].steps.rule;

		if (rule != STEPS_BY_NONE && (best == STEPS_BY_NONE || rule < best))
			best = rule;
	}
	return best;
}

bool torsh_prepass_has_operators(const struct prepass *prepass)
{
	for (size_t i = 0; i < prepass->n; i++) {
		if (prepass->items[i].n_operators)
			return true;
	}
	return false;
}

void torsh_prepass_free(struct prepass *prepass)
{
	for (size_t i = 0; i < prepass->n; i++) {
		torsh_steps_free(&prepass->items[i].steps);
		torsh_device_work_destroy(&prepass->items[i].work);
		torsh_device_list_free(&prepass->items[i].devices);
		torsh_process_counts_free(&prepass->items[i].counts);
	}
	free(prepass->items);
	torsh_unnested_spans_destroy(prepass->unnested);
}
