/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/module_totals.h. */
#include "tools/profile/module_totals.h"

#include <stdlib.h>
#include <string.h>

#include "tools/die.h"

struct adder {
	struct module_totals *totals;
	const struct survey *survey;
	struct flops_book *book;
	struct {
		const struct profile_process *process;
		uint32_t *items; /* by label: index + 1 of its total */
	} * processes;
};

static size_t find_total(struct module_totals *totals, const char *name)
{
	for (size_t i = 0; i < totals->n; i++) {
		if (strcmp(totals->items[i].name, name) == 0)
			return i;
	}
	totals->items = torsh_need_room(totals->items, totals->n, &totals->n_room, sizeof(*totals->items));
	totals->items[totals->n].name = torsh_need(strdup(name));
	return totals->n++;
}

static struct module_total *total_of(struct adder *adder, const struct profile_process *process, uint32_t label)
{
	size_t i = 0;
	const char *name = torsh_timeline_label(process, label);
	uint32_t *item;

	while (adder->processes[i].process != process)
		i++;
	if (!name)
		label = 0;
	item = &adder->processes[i].items[label];
	if (!*item)
		*item = (uint32_t)find_total(adder->totals, name ? name : "") + 1;
	return &adder->totals->items[*item - 1];
}

static void see_begin(void *context, struct call *call)
{
	struct adder *adder = context;

	if (call->kind == CALL_OPERATOR)
		torsh_flops_book_begin(adder->book, call);
}

/* Scopes of the program are no operators: their time is that of Python too. */
static void add_operator(struct adder *adder, const struct call *call, const struct flops *own)
{
	struct module_total *total = total_of(adder, call->process, call->module);
	uint64_t duration_ns = call->end_ns - call->start_ns;
	uint64_t self_ns = duration_ns > call->inner_ns ? duration_ns - call->inner_ns : 0;

	total->flops += own->counter;
	total->flops_all += own->all;
	total->allocated_bytes += call->self_allocated_bytes;
	if (call->scope == OP_USER)
		return;
	total->operators++;
	if (call->phase == PHASE_BACKWARD)
		total->backward_ns += self_ns;
	else
		total->operators_ns += self_ns;
}

static void see_end(void *context, struct call *call)
{
	struct adder *adder = context;
	uint64_t duration_ns = call->end_ns - call->start_ns;
	struct flops own = {0};

	if (call->kind == CALL_OPERATOR)
		own = torsh_flops_book_end(adder->book, call);
	if (!torsh_survey_has(adder->survey, call->process, call->start_ns))
		return;
	if (call->kind == CALL_OPERATOR) {
		add_operator(adder, call, &own);
	} else if (call->is_module) {
		struct module_total *total = total_of(adder, call->process, call->name);

		total->calls++;
		total->total_ns += duration_ns;
		total->self_ns += duration_ns > call->inner_ns ? duration_ns - call->inner_ns : 0;
	}
}

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	(void)context;
	(void)process;
	if (event->event.id == EVENT_TENSOR && innermost && !event->event.tensor.is_free)
		innermost->self_allocated_bytes += event->event.tensor.bytes;
}

/* "net.0" is in "net" and in "", which is the outermost module; "net2" is not in "net". */
static bool is_within(const char *name, const char *outer)
{
	size_t n = strcspn(outer, ":");

	if (!*outer || !*name)
		return false;
	return n == 0 || (strncmp(name, outer, n) == 0 && (name[n] == '.' || name[n] == ':'));
}

static void add_inner(struct module_totals *totals)
{
	for (size_t i = 0; i < totals->n; i++) {
		struct module_total *total = &totals->items[i];

		for (size_t k = 0; k < totals->n; k++) {
			if (k != i && !is_within(totals->items[k].name, total->name))
				continue;
			total->whole_flops += totals->items[k].flops;
			total->whole_flops_all += totals->items[k].flops_all;
		}
	}
}

void torsh_module_totals_collect(struct module_totals *totals, const struct profile *profile,
				 struct profile_process *const *processes, size_t n_processes,
				 const struct survey *survey)
{
	static const struct calls_visitor visitor = {.begin = see_begin, .end = see_end, .event = see_event};
	struct adder adder = {.totals = totals, .survey = survey, .book = torsh_flops_book_create(profile)};
	int rc;

	*totals = (struct module_totals){0};
	adder.processes = torsh_need_items(NULL, 0, n_processes, sizeof(*adder.processes));
	for (size_t i = 0; i < n_processes; i++) {
		adder.processes[i].process = processes[i];
		adder.processes[i].items =
			torsh_need_items(NULL, 0, processes[i]->n_functions + 1, sizeof(*adder.processes[i].items));
	}
	rc = torsh_calls_walk(profile, processes, n_processes, survey->crossings, NULL, &visitor, &adder, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", profile->path, strerror(-rc));
	add_inner(totals);
	for (size_t i = 0; i < n_processes; i++)
		free(adder.processes[i].items);
	free(adder.processes);
	torsh_flops_book_destroy(adder.book);
}

void torsh_module_totals_free(struct module_totals *totals)
{
	for (size_t i = 0; i < totals->n; i++)
		free(totals->items[i].name);
	free(totals->items);
}
