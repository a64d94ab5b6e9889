/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/device/kernels/kernel_groups.h"
#include "tools/export/html/html_page.h"
#include "tools/ops/module_totals.h"
#include "tools/ops/step_totals.h"

#define ROWS 1000u
#define STEPS 4000u

struct html_time {
	struct operators operators, phases;
	struct module_totals modules;
	enum step_rule rule; /* the best of all processes; with another they have no totals */
	struct step_totals *steps; /* by process */
	struct kernels kernels;
	struct kernel_group *groups;
	size_t n_groups, n_steps;
	bool has_tensors;
};

static enum step_rule best_rule(const struct prepass *prepass)
{
	enum step_rule best = STEPS_BY_NONE;

	for (size_t i = 0; i < prepass->n; i++) {
		enum step_rule rule = prepass->items[i].steps.rule;

		if (rule != STEPS_BY_NONE && (best == STEPS_BY_NONE || rule < best))
			best = rule;
	}
	return best;
}

static void collect_steps(struct html_time *time, const struct trace *trace)
{
	time->rule = best_rule(trace->prepass);
	time->steps = torsh_need_items(NULL, 0, trace->n_processes, sizeof(*time->steps));
	for (size_t i = 0; i < trace->n_processes; i++) {
		const struct steps *steps = &trace->prepass->items[i].steps;

		if (!steps->n || steps->rule != time->rule)
			continue;
		torsh_step_totals_collect(&time->steps[i], trace->recording, trace->processes[i],
					  trace->prepass);
		time->n_steps += steps->n;
	}
}

static int compare_operators(const void *a, const void *b)
{
	const struct operator_total *x = a, *y = b;

	return (x->self_cpu_ns < y->self_cpu_ns) - (x->self_cpu_ns > y->self_cpu_ns);
}

static int compare_groups(const void *a, const void *b)
{
	const struct kernel_group *x = a, *y = b;

	return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

static int compare_modules(const void *a, const void *b)
{
	const struct module_total *x = a, *y = b;

	return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

void torsh_html_time_collect(struct html_page *page)
{
	static const struct operators_request by_name = {.group = OPERATORS_BY_NAME};
	static const struct operators_request by_phase = {.group = OPERATORS_BY_PHASE};
	const struct trace *trace = page->trace;
	struct html_time *time = page->time = torsh_need(calloc(1, sizeof(*time)));

	for (size_t i = 0; i < trace->prepass->n; i++)
		time->has_tensors = time->has_tensors || trace->prepass->items[i].n_tensors;
	torsh_operators_collect(&time->operators, &by_name, trace->recording, trace->processes,
				trace->n_processes, trace->prepass);
	torsh_operators_collect(&time->phases, &by_phase, trace->recording, trace->processes,
				trace->n_processes, trace->prepass);
	torsh_module_totals_collect(&time->modules, trace->recording, trace->processes,
				    trace->n_processes, trace->prepass);
	torsh_kernels_collect(&time->kernels, trace->recording, trace->processes,
			      trace->n_processes, trace->prepass);
	time->groups = torsh_kernel_groups_make(&time->kernels, &time->n_groups);
	collect_steps(time, trace);
	torsh_html_processor_collect(page);
	if (time->operators.n)
		qsort(time->operators.items, time->operators.n, sizeof(*time->operators.items),
		      compare_operators);
	if (time->modules.n)
		qsort(time->modules.items, time->modules.n, sizeof(*time->modules.items),
		      compare_modules);
	if (time->n_groups)
		qsort(time->groups, time->n_groups, sizeof(*time->groups), compare_groups);
}

void torsh_html_time_free(struct html_page *page)
{
	struct html_time *time = page->time;

	torsh_html_processor_free(page);
	for (size_t i = 0; i < page->trace->n_processes; i++)
		torsh_step_totals_free(&time->steps[i]);
	free(time->steps);
	free(time->groups);
	torsh_kernels_free(&time->kernels);
	torsh_module_totals_free(&time->modules);
	torsh_operators_free(&time->phases);
	torsh_operators_free(&time->operators);
	free(time);
}

/* ---- the document ---------------------------------------------------------------------------- */

/* [name, calls, cpu, own cpu, min, p50, p99, max, device, own device, FLOPs, own bytes] */
static void put_operator(struct html_page *page, const struct operator_total *total)
{
	const struct html_time *time = page->time;
	struct json_writer *json = &page->json;
	bool has_devices = time->operators.has_devices;

	torsh_json_begin_array(json, NULL);
	torsh_html_put_text(page, NULL, total->name);
	torsh_json_put_u64(json, NULL, total->calls);
	torsh_json_put_u64(json, NULL, total->cpu_ns);
	torsh_json_put_u64(json, NULL, total->self_cpu_ns);
	torsh_json_put_known(json, NULL, total->calls, total->min_ns);
	torsh_json_put_known(json, NULL, total->calls,
			     torsh_histogram_percentile(&total->durations, 0.5));
	torsh_json_put_known(json, NULL, total->calls,
			     torsh_histogram_percentile(&total->durations, 0.99));
	torsh_json_put_known(json, NULL, total->calls, total->max_ns);
	torsh_json_put_known(json, NULL, has_devices, total->device_ns);
	torsh_json_put_known(json, NULL, has_devices, total->self_device_ns);
	torsh_json_put_known(json, NULL, total->has_flops, total->self_flops_all);
	torsh_json_put_known(json, NULL, time->has_tensors, total->self_allocated_bytes);
	torsh_json_end_array(json);
}

static void put_operators(struct html_page *page)
{
	const struct operators *operators = &page->time->operators;
	struct json_writer *json = &page->json;
	size_t n = torsh_html_limit(page, ROWS);

	n = n < operators->n ? n : operators->n;
	torsh_json_begin_object(json, "operators");
	torsh_json_put_u64(json, "calls", operators->calls);
	torsh_json_put_u64(json, "self_cpu_ns", operators->self_cpu_ns);
	torsh_json_put_u64(json, "self_device_ns", operators->self_device_ns);
	torsh_json_put_u64(json, "flops", operators->flops_all);
	torsh_json_put_u64(json, "omitted", operators->n - n);
	torsh_json_begin_array(json, "rows");
	for (size_t i = 0; i < n; i++)
		put_operator(page, &operators->items[i]);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

/* [name, calls, forward, own, operators, backward, device, FLOPs, own bytes] */
static void put_module(struct html_page *page, const struct module_total *total)
{
	const struct html_time *time = page->time;
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, NULL);
	torsh_html_put_text(page, NULL, *total->name ? total->name : NULL);
	torsh_json_put_u64(json, NULL, total->calls);
	torsh_json_put_u64(json, NULL, total->total_ns);
	torsh_json_put_u64(json, NULL, total->self_ns);
	torsh_json_put_u64(json, NULL, total->operators_ns);
	torsh_json_put_u64(json, NULL, total->whole_backward_ns);
	torsh_json_put_known(json, NULL, time->modules.has_devices, total->whole_device_ns);
	torsh_json_put_known(json, NULL, !page->trace->recording->without_flops,
			     total->whole_flops_all);
	torsh_json_put_known(json, NULL, time->has_tensors, total->allocated_bytes);
	torsh_json_end_array(json);
}

static void put_modules(struct html_page *page)
{
	const struct module_totals *modules = &page->time->modules;
	struct json_writer *json = &page->json;
	size_t n = torsh_html_limit(page, ROWS);

	n = n < modules->n ? n : modules->n;
	torsh_json_begin_object(json, "modules");
	torsh_json_put_u64(json, "omitted", modules->n - n);
	torsh_json_begin_array(json, "rows");
	for (size_t i = 0; i < n; i++)
		put_module(page, &modules->items[i]);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

/* [what, name, calls, timed calls, total, min, max, bytes, operator of most, its share] */
static void put_group(struct html_page *page, const struct kernel_group *group)
{
	const struct kernel_row *row = group->rows;
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, NULL);
	torsh_html_put_text(page, NULL, torsh_device_what_names[row->what]);
	torsh_html_put_text(page, NULL,
			    row->what == DEVICE_KERNEL
				    ? torsh_symbols_demangle(page->trace->symbols, row->name)
				    : row->name);
	torsh_json_put_u64(json, NULL, group->calls);
	torsh_json_put_u64(json, NULL, group->timed);
	torsh_json_put_known(json, NULL, group->timed, group->total_ns);
	torsh_json_put_known(json, NULL, group->timed, group->min_ns);
	torsh_json_put_known(json, NULL, group->timed, group->max_ns);
	torsh_json_put_u64(json, NULL, group->bytes);
	torsh_html_put_text(page, NULL, row->operator_name);
	torsh_html_put_text(page, NULL, torsh_attribution_words[row->method].confidence);
	torsh_json_end_array(json);
}

static void put_kernels(struct html_page *page)
{
	const struct html_time *time = page->time;
	struct json_writer *json = &page->json;
	size_t n = torsh_html_limit(page, ROWS);

	n = n < time->n_groups ? n : time->n_groups;
	torsh_json_begin_object(json, "kernels");
	torsh_json_put_u64(json, "total_ns", time->kernels.total_ns);
	torsh_json_put_u64(json, "attributed_ns", time->kernels.attributed_ns);
	torsh_json_put_u64(json, "omitted", time->n_groups - n);
	torsh_json_begin_array(json, "rows");
	for (size_t i = 0; i < n; i++)
		put_group(page, &time->groups[i]);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

/* [process, number, start, duration, device, peak of tensors, FLOPs, other, phases...] */
static void put_step(struct html_page *page, size_t process, size_t i)
{
	const struct prepass_process *of = &page->trace->prepass->items[process];
	const struct step_totals *totals = &page->time->steps[process];
	const struct step_total *total = &totals->items[i];
	const struct step *step = &of->steps.items[i];
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, NULL);
	torsh_json_put_u64(json, NULL, process);
	torsh_json_put_u64(json, NULL, step->number);
	torsh_json_put_u64(json, NULL, step->start_ns);
	torsh_json_put_u64(json, NULL, step->end_ns - step->start_ns);
	torsh_json_put_known(json, NULL, totals->has_devices, total->device_ns);
	torsh_json_put_known(json, NULL, of->n_tensors != 0, total->peak_bytes);
	torsh_json_put_known(json, NULL, !page->trace->recording->without_flops, total->flops_all);
	torsh_json_put_u64(json, NULL, total->spent.other_ns);
	for (size_t k = 0; k < N_PHASES; k++)
		torsh_json_put_u64(json, NULL, total->spent.phase_ns[k]);
	torsh_json_end_array(json);
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Returns the median over all steps; 0: there are none. */
static uint64_t median_ns(const struct html_page *page)
{
	const struct html_time *time = page->time;
	uint64_t *all = torsh_need_items(NULL, 0, time->n_steps + 1, sizeof(*all)), median;
	size_t n = 0;

	for (size_t i = 0; i < page->trace->n_processes; i++) {
		const struct steps *steps = &page->trace->prepass->items[i].steps;

		for (size_t k = 0; time->steps[i].items && k < steps->n; k++)
			all[n++] = steps->items[k].end_ns - steps->items[k].start_ns;
	}
	qsort(all, n, sizeof(*all), compare_numbers);
	median = all[n / 2];
	free(all);
	return median;
}

static void put_steps(struct html_page *page)
{
	const struct html_time *time = page->time;
	struct json_writer *json = &page->json;
	size_t n_max = torsh_html_limit(page, STEPS), n = 0;

	torsh_json_begin_object(json, "steps");
	torsh_json_put_u64(json, "n", time->n_steps);
	torsh_html_put_text(page, "rule", torsh_step_rule_texts[time->rule]);
	torsh_json_put_known(json, "median_ns", time->n_steps, median_ns(page));
	torsh_json_begin_array(json, "phases");
	for (size_t i = 0; i < N_PHASES; i++)
		torsh_json_put_text(json, NULL, torsh_phase_names[i]);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "rows");
	for (size_t i = 0; i < page->trace->n_processes; i++) {
		for (size_t k = 0; time->steps[i].items && n < n_max &&
				   k < page->trace->prepass->items[i].steps.n;
		     k++, n++)
			put_step(page, i, k);
	}
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "omitted", time->n_steps - n);
	torsh_json_end_object(json);
}

/* Put the time by phase if there are no steps: [name, own time of operators]. */
static void put_phases(struct html_page *page)
{
	const struct operators *phases = &page->time->phases;
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, "operator_phases");
	for (size_t i = 0; i < phases->n; i++) {
		torsh_json_begin_array(json, NULL);
		torsh_html_put_text(page, NULL, phases->items[i].name);
		torsh_json_put_u64(json, NULL, phases->items[i].self_cpu_ns);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
}

void torsh_html_time_put(struct html_page *page)
{
	put_operators(page);
	put_modules(page);
	put_kernels(page);
	put_steps(page);
	put_phases(page);
	torsh_html_processor_put(page);
}
