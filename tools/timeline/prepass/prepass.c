/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/timeline/prepass/prepass.h. */
#include "tools/timeline/prepass/prepass.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

const struct survey_process *torsh_survey_of(const struct survey *survey, const struct profile_process *process)
{
	for (size_t i = 0; i < survey->n; i++) {
		if (survey->items[i].process == process)
			return &survey->items[i];
	}
	return NULL;
}

static struct survey_process *find(struct survey *survey, const struct profile_process *process, uint64_t at_ns)
{
	struct survey_process *of = (struct survey_process *)torsh_survey_of(survey, process);

	if (!of->has_events || at_ns < of->first_ns)
		of->first_ns = at_ns;
	if (at_ns > of->last_ns)
		of->last_ns = at_ns;
	of->has_events = true;
	return of;
}

static void see_begin(void *context, struct call *call)
{
	struct survey *survey = context;
	struct survey_process *of = find(survey, call->process, call->start_ns);

	of->n_operators += call->kind == CALL_OPERATOR;
	of->n_modules += call->is_module;
	of->n_ranges += call->kind == CALL_RANGE && !call->is_module;
	survey->has_inputs = survey->has_inputs || call->inputs;
	survey->has_stacks = survey->has_stacks || call->stack;
	torsh_data_workers_add(survey->data_workers, call);
	torsh_pass_finder_begin(of->passes, call);
	torsh_step_finder_begin(of->finder, call);
}

static void see_end(void *context, struct call *call)
{
	struct survey_process *of = find(context, call->process, call->end_ns);

	torsh_pass_finder_end(of->passes, call);
	torsh_step_finder_end(of->finder, call);
}

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	struct survey_process *of;

	/* The writer's own: nothing happened then. */
	if (event->event.id == EVENT_HEAP_MARK)
		return;
	of = find(context, process, event->at_ns);
	of->n_tensors += event->event.id == EVENT_TENSOR;
	torsh_step_finder_event(of->finder, event);
	torsh_device_work_add(&of->work, &event->event, innermost);
	torsh_device_list_add(&of->devices, &event->event);
	torsh_facts_add(&of->facts, process, &event->event);
}

void torsh_survey_make(struct survey *survey, const struct profile *profile, struct profile_process *const *processes,
		       size_t n_processes)
{
	static const struct calls_visitor visitor = {.begin = see_begin, .end = see_end, .event = see_event};
	int rc;

	*survey = (struct survey){.n = n_processes, .crossings = torsh_crossings_create()};
	survey->data_workers = torsh_data_workers_create(profile);
	survey->items = torsh_need_items(NULL, 0, n_processes, sizeof(*survey->items));
	for (size_t i = 0; i < n_processes; i++) {
		survey->items[i].process = processes[i];
		survey->items[i].finder = torsh_step_finder_create();
		survey->items[i].passes = torsh_pass_finder_create();
		torsh_device_work_create(&survey->items[i].work);
	}
	rc = torsh_calls_walk(profile, processes, n_processes, NULL, survey->crossings, &visitor, survey,
			      &survey->counts);
	if (rc == 0)
		rc = torsh_data_workers_decide(survey->data_workers, processes, n_processes);
	torsh_data_workers_destroy(survey->data_workers);
	survey->data_workers = NULL;
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", profile->path, strerror(-rc));
	for (size_t i = 0; i < n_processes; i++) {
		struct survey_process *of = &survey->items[i];

		torsh_pass_finder_decide(of->passes, processes[i]);
		torsh_pass_finder_destroy(of->passes);
		of->passes = NULL;
		torsh_step_finder_decide(of->finder, of->last_ns, processes[i]->setup_end_ns, &of->steps);
		torsh_step_finder_destroy(of->finder);
		of->finder = NULL;
	}
}

size_t torsh_survey_choose(struct survey *survey, const struct steps_choice *choice)
{
	size_t n = 0;

	for (size_t i = 0; i < survey->n; i++) {
		torsh_steps_choose(&survey->items[i].steps, choice);
		n += survey->items[i].steps.n;
	}
	return n;
}

bool torsh_survey_has(const struct survey *survey, const struct profile_process *process, uint64_t at_ns)
{
	return torsh_steps_have(&torsh_survey_of(survey, process)->steps, at_ns);
}

bool torsh_survey_has_operators(const struct survey *survey)
{
	for (size_t i = 0; i < survey->n; i++) {
		if (survey->items[i].n_operators)
			return true;
	}
	return false;
}

void torsh_survey_free(struct survey *survey)
{
	for (size_t i = 0; i < survey->n; i++) {
		torsh_steps_free(&survey->items[i].steps);
		torsh_device_work_destroy(&survey->items[i].work);
		torsh_device_list_free(&survey->items[i].devices);
	}
	free(survey->items);
	torsh_crossings_destroy(survey->crossings);
}
