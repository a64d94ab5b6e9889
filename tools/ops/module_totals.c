/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/module_totals.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/timeline/device/launch_join.h"

struct adder {
	struct module_totals *totals;
	const struct prepass *prepass;
	struct flops_book *book;
	struct device_join *join;
	struct {
		const struct recorded_process *process;
		uint32_t *items; /* by label: index of its total + 1 */
	} * processes;
};

static size_t find_total(struct module_totals *totals, const char *name)
{
	for (size_t i = 0; i < totals->n; i++) {
		if (strcmp(totals->items[i].name, name) == 0)
			return i;
	}
	totals->items = torsh_array_reserve(totals->items, totals->n, &totals->n_room,
					    sizeof(*totals->items));
	totals->items[totals->n].name = torsh_need(strdup(name));
	return totals->n++;
}

static struct module_total *total_of(struct adder *adder, const struct recorded_process *process,
				     uint32_t label)
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

static void see_begin(void *context, struct span *span)
{
	struct adder *adder = context;

	if (span->kind == SPAN_OPERATOR)
		torsh_flops_book_begin(adder->book, span);
}

/* What one module adds to itself and to the modules around it. */
struct share {
	uint64_t backward_ns, flops, flops_all, device_ns;
};

/* Returns whether the module also occurs further inside, where it is counted. */
static bool is_again(struct adder *adder, const struct recorded_process *process,
		     const struct module_chain *innermost, const struct module_chain *at)
{
	const struct module_total *total = total_of(adder, process, at->module);

	for (; innermost != at; innermost = innermost->outer) {
		if (total_of(adder, process, innermost->module) == total)
			return true;
	}
	return false;
}

static void add_share(struct adder *adder, const struct recorded_process *process,
		      const struct module_chain *modules, const struct share *share)
{
	const struct module_chain *at = modules;

	do {
		struct module_total *total = total_of(adder, process, at ? at->module : 0);

		if (at && is_again(adder, process, modules, at))
			continue;
		total->whole_backward_ns += share->backward_ns;
		total->whole_flops += share->flops;
		total->whole_flops_all += share->flops_all;
		total->whole_device_ns += share->device_ns;
	} while (at && (at = at->outer));
}

/* A scope of the program is no operator: its time includes Python's. */
static void add_operator(struct adder *adder, const struct span *span, const struct flops *own)
{
	struct module_total *total = total_of(adder, span->process, span->module);
	uint64_t duration_ns = span->end_ns - span->start_ns;
	uint64_t self_ns = duration_ns > span->inner_ns ? duration_ns - span->inner_ns : 0;
	struct share share = {.flops = own->counter, .flops_all = own->all};

	total->flops += own->counter;
	total->flops_all += own->all;
	total->allocated_bytes += span->self_allocated_bytes;
	if (span->scope != OP_USER) {
		total->operators++;
		if (span->phase == PHASE_BACKWARD)
			share.backward_ns = self_ns;
		else
			total->operators_ns += self_ns;
	}
	total->backward_ns += share.backward_ns;
	add_share(adder, span->process, span->modules, &share);
}

static void see_launch(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	const struct adder *adder = context;

	torsh_device_join_launch(adder->join, process, event, around);
}

/* Also without an operator: kernels that a module launches itself. */
static void add_row(void *context, const struct device_activity *activity)
{
	struct adder *adder = context;
	struct share share = {.device_ns = activity->record.duration_ns};

	if (!torsh_prepass_has(adder->prepass, activity->process,
			       torsh_activity_issued_ns(activity)))
		return;
	total_of(adder, activity->process, activity->cause.module)->device_ns += share.device_ns;
	add_share(adder, activity->process, activity->cause.modules, &share);
}

static void see_counts(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	struct adder *adder = context;
	const struct module_chain *modules = torsh_enclosing_modules(around), *at = modules;

	/* Outside of modules only operators count. */
	if (!torsh_cpu_counts_are_in(&event->event) || (!modules && !around->in_operator) ||
	    !torsh_prepass_has(adder->prepass, process, event->at_ns))
		return;
	torsh_cpu_counts_take(&total_of(adder, process, at ? at->module : 0)->counts,
			      &event->event);
	do {
		struct module_total *total = total_of(adder, process, at ? at->module : 0);

		if (!at || !is_again(adder, process, modules, at))
			torsh_cpu_counts_take(&total->whole_counts, &event->event);
	} while (at && (at = at->outer));
}

static void see_end(void *context, struct span *span)
{
	struct adder *adder = context;
	uint64_t duration_ns = span->end_ns - span->start_ns;
	struct flops own = {0};

	if (span->kind == SPAN_OPERATOR)
		own = torsh_flops_book_end(adder->book, span);
	if (!torsh_prepass_has(adder->prepass, span->process, span->start_ns))
		return;
	if (span->kind == SPAN_OPERATOR) {
		add_operator(adder, span, &own);
	} else if (span->is_module) {
		struct module_total *total = total_of(adder, span->process, span->name);

		total->calls++;
		total->total_ns += duration_ns;
		total->self_ns += duration_ns > span->inner_ns ? duration_ns - span->inner_ns : 0;
	}
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	const struct adder *adder = context;

	if (event->event.id >= EVENT_LAUNCH)
		torsh_device_join_event(adder->join, process, &event->event);
	if (event->event.id == EVENT_TENSOR && innermost && !event->event.tensor.is_free)
		innermost->self_allocated_bytes += event->event.tensor.bytes;
}

void torsh_module_totals_collect(struct module_totals *totals, const struct recording *recording,
				 struct recorded_process *const *processes, size_t n_processes,
				 const struct prepass *prepass)
{
	static const struct span_visitor visitor = {.begin = see_begin,
						    .end = see_end,
						    .event = see_event,
						    .launch = see_launch,
						    .sample = see_counts};
	static const struct device_visitor devices = {.activity = add_row};
	struct adder adder = {.totals = totals,
			      .prepass = prepass,
			      .book = torsh_flops_book_create(recording, prepass)};
	int rc;

	*totals = (struct module_totals){0};
	adder.processes = torsh_need_items(NULL, 0, n_processes, sizeof(*adder.processes));
	for (size_t i = 0; i < n_processes; i++) {
		totals->has_devices = totals->has_devices ||
				      torsh_prepass_of(prepass, processes[i])->work.is_seen;
		adder.processes[i].process = processes[i];
		adder.processes[i].items =
			torsh_need_items(NULL, 0, processes[i]->tables->n_functions + 1,
					 sizeof(*adder.processes[i].items));
	}
	adder.join = torsh_device_join_create(prepass, &devices, &adder);
	rc = torsh_spans_visit(recording, processes, n_processes, prepass->unnested, NULL, &visitor,
			       &adder, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	torsh_device_join_destroy(adder.join);
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

const char *torsh_module_display_name(const char *name)
{
	const char *colon = strrchr(name, ':');
	size_t n = colon ? (size_t)(colon - name) : 0;

	return colon && strlen(colon + 1) == n && strncmp(name, colon + 1, n) == 0 ? colon + 1
										   : name;
}
