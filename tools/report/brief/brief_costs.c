/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The most costly things of a run: time first, memory where time is not known. */
#include "tools/report/brief/brief.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/host/gc_figures.h"
#include "tools/base/die.h"
#include "tools/frames/blamed_line.h"
#include "tools/ops/operators.h"
#include "tools/report/brief/source_line.h"

#define FUNCTION_BYTES 128u
#define OF_OPERATORS "the operators' time"
#define OF_DEVICES "the devices' work"

const char *const torsh_brief_cost_names[N_COST_KINDS] = {
	[COST_OPERATOR] = "operator", [COST_DEVICE] = "device", [COST_PYTHON] = "python",
	[COST_WAITING] = "waiting",   [COST_COLLECTOR] = "gc",	[COST_PEAK] = "peak",
	[COST_LEAK] = "leak",
};

static uint64_t weight(const struct operator_total *total)
{
	return total->self_device_ns > total->self_cpu_ns ? total->self_device_ns
							  : total->self_cpu_ns;
}

static int compare(const void *a, const void *b)
{
	const struct operator_total *x = a, *y = b;

	if (weight(x) != weight(y))
		return weight(x) < weight(y) ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void collect(struct operators *operators, enum operator_group group,
		    const struct overview *overview, const struct prepass *prepass)
{
	const struct operators_request request = {.group = group, .merge_nested = true};

	torsh_operators_collect(operators, &request, overview->recording, overview->processes,
				overview->n_processes, prepass);
	if (operators->n)
		qsort(operators->items, operators->n, sizeof(*operators->items), compare);
}

/* Insert a cost by its time; the least may drop out. Takes nothing over. */
static void insert(struct brief *brief, const struct brief_cost *cost)
{
	size_t at = brief->n_costs;

	if (!cost->ns)
		return;
	while (at && brief->costs[at - 1].ns < cost->ns)
		at--;
	if (at == BRIEF_COSTS)
		return;
	if (brief->n_costs < BRIEF_COSTS)
		brief->n_costs++;
	memmove(&brief->costs[at + 1], &brief->costs[at],
		(brief->n_costs - at - 1) * sizeof(*brief->costs));
	brief->costs[at] = *cost;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

static void insert_operators(struct brief *brief, const struct operators *operators)
{
	for (size_t i = 0; i < operators->n && i < BRIEF_COSTS; i++) {
		const struct operator_total *total = &operators->items[i];
		bool is_device = total->self_device_ns > total->self_cpu_ns;
		struct brief_cost cost = {
			.kind = is_device ? COST_DEVICE : COST_OPERATOR,
			.name = total->name,
			.ns = weight(total),
			.calls = total->calls,
			.share_pct = percent(weight(total), is_device ? operators->self_device_ns
								      : operators->self_cpu_ns),
			.share_of = is_device ? OF_DEVICES : OF_OPERATORS,
		};

		insert(brief, &cost);
	}
}

/* Time of the main process's steps that no operator has. */
static void insert_gaps(struct brief *brief, const struct metrics_process *of)
{
	const struct operator_time *time = &of->operator_time;
	const char *scope = of->scope.is_of_steps ? "the steps" : "the run";
	uint64_t whole = of->scope.steady_ns;
	const struct brief_cost python = {.kind = COST_PYTHON,
					  .ns = time->short_gaps_ns,
					  .calls = time->n_short_gaps,
					  .share_pct = percent(time->short_gaps_ns, whole),
					  .share_of = scope};
	const struct brief_cost waiting = {.kind = COST_WAITING,
					   .ns = time->long_gaps_ns,
					   .calls = time->n_long_gaps,
					   .share_pct = percent(time->long_gaps_ns, whole),
					   .share_of = scope};

	if (!of->scope.is_of_steps)
		return;
	insert(brief, &python);
	insert(brief, &waiting);
}

static void insert_collector(struct brief *brief, const struct metrics_process *of)
{
	const struct brief_cost cost = {.kind = COST_COLLECTOR,
					.ns = torsh_gc_ns(&of->gc.steady),
					.calls = torsh_gc_runs(&of->gc.steady),
					.share_pct = torsh_gc_share(of),
					.share_of = torsh_gc_share_of(of)};

	insert(brief, &cost);
}

/* Set the line, and its text. */
static void set_frame(struct brief *brief, struct brief_cost *cost, const struct frame *frame)
{
	const struct recorded_process *process = brief->main;
	uint64_t until_ns = brief->overview->recording->start_realtime_ns;

	if (process->has_end_ns)
		until_ns += process->end_ns;
	cost->frame = frame;
	if (frame && frame->file && frame->line > 0)
		cost->quoted =
			torsh_source_line(frame->file, frame->line, until_ns, &cost->unquoted);
}

static const struct frame *blamed(const struct frame *const *frames, size_t n)
{
	size_t where = torsh_blamed_line(frames, n, torsh_working_directory()).where;

	return where == FRAME_NONE ? NULL : frames[where];
}

/* The line that calls an operator most often, by what it allocates in it. */
struct caller {
	const struct brief *brief;
	const char *name;
	char function[FUNCTION_BYTES]; /* that calls it; empty: its sites are those of its own */
	struct allocation_site best;
};

static const struct frame **frames_of(const struct brief *brief, const struct allocation_site *site,
				      size_t *n)
{
	return torsh_stack_frames(
		site->process, site->stack, brief->overview->symbols,
		site->process->tables->has_python ? STACK_VIEW_MERGED : STACK_VIEW_NATIVE, n);
}

static bool passes_through(const struct caller *caller, const struct allocation_site *site)
{
	size_t n;
	const struct frame **frames = frames_of(caller->brief, site, &n);
	bool passes = false;

	for (size_t i = 0; i < n && !passes; i++)
		passes = frames[i]->function && strstr(frames[i]->function, caller->function);
	free(frames);
	return passes;
}

static void take_caller(const struct allocation_site *site, void *context)
{
	struct caller *caller = context;
	const char *name = torsh_site_operator(site);

	if (!name || site->blocks <= caller->best.blocks)
		return;
	if (*caller->function ? passes_through(caller, site) : strcmp(name, caller->name) == 0)
		caller->best = *site;
}

static void find_caller(struct caller *caller)
{
	const struct overview *overview = caller->brief->overview;

	for (size_t k = 0; k < overview->n_processes; k++)
		torsh_sites_each(overview->processes[k], SITES_ALLOCATED, take_caller, caller);
}

const struct frame *torsh_brief_caller(const struct brief *brief, const char *operator_name)
{
	struct caller caller = {.brief = brief, .name = operator_name};
	const struct frame **frames, *frame;
	size_t n;

	find_caller(&caller);
	/* One that only calls others allocates in these: each has a function of its own. */
	if (!caller.best.process && strncmp(operator_name, "aten::", strlen("aten::")) == 0) {
		snprintf(caller.function, sizeof(caller.function), "at::_ops::%s::call",
			 operator_name + strlen("aten::"));
		find_caller(&caller);
	}
	if (!caller.best.process)
		return NULL;
	frames = frames_of(brief, &caller.best, &n);
	frame = blamed(frames, n);
	free(frames);
	return frame;
}

static void name_callers(struct brief *brief)
{
	for (size_t i = 0; i < brief->n_costs; i++) {
		struct brief_cost *cost = &brief->costs[i];

		if (cost->name)
			set_frame(brief, cost, torsh_brief_caller(brief, cost->name));
	}
}

static void name_inputs(struct brief *brief, const struct prepass *prepass)
{
	struct operators by_shape = {0};

	collect(&by_shape, OPERATORS_BY_SHAPE, brief->overview, prepass);
	for (size_t i = 0; i < brief->n_costs; i++) {
		struct brief_cost *cost = &brief->costs[i];

		for (size_t k = 0; cost->name && k < by_shape.n && !cost->inputs; k++) {
			const struct operator_total *total = &by_shape.items[k];

			if (total->inputs && *total->inputs && strcmp(total->name, cost->name) == 0)
				cost->inputs = torsh_need(strdup(total->inputs));
		}
	}
	torsh_operators_free(&by_shape);
}

/* The largest site of a list of memory, where there is room left. */
static void add_memory(struct brief *brief, enum brief_cost_kind kind,
		       const struct allocation_site *site, uint64_t whole, const char *share_of)
{
	struct brief_cost *cost = &brief->costs[brief->n_costs];

	if (brief->n_costs == BRIEF_COSTS || !site || !site->bytes)
		return;
	*cost = (struct brief_cost){.kind = kind,
				    .bytes = site->bytes,
				    .calls = site->blocks,
				    .share_pct = percent(site->bytes, whole),
				    .share_of = share_of};
	brief->n_costs++;
	set_frame(brief, cost, blamed(site->frames, site->n_frames));
}

void torsh_brief_find_costs(struct brief *brief, const struct prepass *prepass)
{
	const struct overview *overview = brief->overview;
	const struct metrics_process *of = torsh_overview_metrics(overview, brief->main);
	struct operators by_name = {0};
	bool has_operators = torsh_prepass_has_operators(prepass);

	if (has_operators) {
		collect(&by_name, OPERATORS_BY_NAME, overview, prepass);
		insert_operators(brief, &by_name);
	}
	if (of && has_operators)
		insert_gaps(brief, of);
	if (of)
		insert_collector(brief, of);
	for (size_t i = 0; i < brief->n_costs; i++) {
		if (brief->costs[i].name)
			brief->costs[i].name = torsh_need(strdup(brief->costs[i].name));
	}
	if (has_operators) {
		torsh_operators_free(&by_name);
		name_callers(brief);
		name_inputs(brief, prepass);
	}
	add_memory(brief, COST_LEAK, torsh_brief_lost(brief), overview->leaks.bytes, "what leaked");
	add_memory(brief, COST_PEAK, overview->n_peak ? overview->peak.items : NULL,
		   overview->highest.bytes, "the peak");
}
