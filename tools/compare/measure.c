/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures one run: its totals, and its rows of stacks, operators, modules, kernels and lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/compare/compare.h"
#include "tools/device/kernels/kernels.h"
#include "tools/memory/growth/growth.h"
#include "tools/memory/leaks/rules/growth_rules.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/memory/leaks/peak_holders.h"
#include "tools/memory/peak.h"
#include "tools/ops/module_totals.h"

/* The context of a measurement. */
struct measuring {
	struct comparison *comparison;
	size_t run;
	const struct compare_run *of;
	struct prepass prepass;
};

static void set_total(const struct measuring *at, enum compare_total total, bool is_known,
		      uint64_t value)
{
	at->comparison->totals[total].is_known[at->run] = is_known;
	at->comparison->totals[total].values[at->run] = value;
}

static void add_amounts(const struct measuring *at, struct compare_row *row, uint64_t first,
			uint64_t second)
{
	row->amounts[0][at->run] += first;
	row->amounts[1][at->run] += second;
}

static void add_named(const struct measuring *at, enum compare_table table, const char *name,
		      uint64_t first, uint64_t second)
{
	struct compare_row *row = torsh_compare_row(at->comparison, table, at->run, name);

	row->name = torsh_intern(&at->comparison->texts, name);
	add_amounts(at, row, first, second);
}

/* Add to the row of a place, which takes the place. */
static void add_place(const struct measuring *at, enum compare_table table, struct place *place,
		      uint64_t first, uint64_t second)
{
	add_amounts(at, torsh_compare_place_row(at->comparison, table, at->run, place), first,
		    second);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void measure_leaks(const struct measuring *at, bool is_known)
{
	const struct compare_run *of = at->of;
	size_t n_rules = of->suppress->n;
	struct leaks leaks = {.found.view = of->view};

	torsh_leaks_find(&leaks, of->processes, of->n_processes, of->symbols, of->suppress);
	set_total(at, COMPARE_leaked_bytes, is_known, leaks.bytes);
	set_total(at, COMPARE_leaked_blocks, is_known, leaks.blocks);
	at->comparison->tables[COMPARE_SITES].n_measured += is_known;
	torsh_sites_name(&leaks.found, of->symbols, leaks.found.n);
	for (size_t i = 0; i < leaks.found.n; i++) {
		const struct allocation_site *site = &leaks.found.items[i];
		struct place place;

		torsh_place_make(&place, site->frames, site->n_frames, NULL);
		add_place(at, COMPARE_SITES, &place, site->bytes, site->blocks);
	}
	torsh_leaks_free(&leaks);
	/* The next run's processes have the same numbers. */
	torsh_suppress_restart_with(of->suppress, n_rules);
}

/* Sites so small that their stacks are not compared. */
#define LEAST_PART_NAMED 2000u
#define SITES_NAMED 1000u /* of so few all are */

static void add_imports(const struct measuring *at, const struct kept_imports *imports)
{
	for (size_t i = 0; i < imports->n; i++) {
		const struct kept_import *import = &imports->items[i];
		char *name = torsh_need_text("imports of packages: %s", import->package);

		add_named(at, COMPARE_PEAK, name, import->bytes, import->blocks);
		free(name);
	}
}

static void measure_peak(const struct measuring *at, const struct peak *peak)
{
	const struct compare_run *of = at->of;
	struct peak_holders holders = {.sites.view = of->view};
	struct allocation_sites *sites = &holders.sites;
	size_t n;

	torsh_peak_holders_find(&holders, peak, of->recording, of->symbols);
	add_imports(at, &holders.imports);
	torsh_sites_merge_stacks(sites, of->symbols);
	torsh_sites_sort(sites, ORDER_BYTES);
	n = sites->n <= SITES_NAMED
		    ? sites->n
		    : torsh_sites_put_large_first(sites, peak->bytes / LEAST_PART_NAMED);
	torsh_sites_name(sites, of->symbols, n);
	for (size_t i = 0; i < sites->n; i++) {
		const struct allocation_site *site = &sites->items[i];
		struct place place;

		if (!site->frames) {
			add_named(at, COMPARE_PEAK, "stacks below 0.05%", site->bytes,
				  site->blocks);
			continue;
		}
		torsh_place_make(&place, site->frames, site->n_frames, NULL);
		add_place(at, COMPARE_PEAK, &place, site->bytes, site->blocks);
	}
	torsh_peak_holders_free(&holders);
	at->comparison->tables[COMPARE_PEAK].n_measured++;
}

static void measure_growth(const struct measuring *at, bool is_known)
{
	struct growth growth = {0};

	torsh_growth_find(&growth, at->of->processes, at->of->n_processes);
	torsh_growth_suppress(&growth, at->of->suppress, at->of->symbols);
	set_total(at, COMPARE_growth_bytes_per_step, is_known && growth.is_enough,
		  (uint64_t)(torsh_growth_bytes(&growth) + 0.5));
	torsh_growth_free(&growth);
}

static void measure_memory(const struct measuring *at)
{
	const struct compare_run *of = at->of;
	bool is_known = torsh_recording_has_heaps(of->processes, of->n_processes);
	struct peak peak = torsh_peak_choose(of->recording, of->processes, of->n_processes);

	measure_leaks(at, is_known);
	set_total(at, COMPARE_peak_bytes, is_known && peak.is_known, peak.bytes);
	if (is_known && peak.is_known)
		measure_peak(at, &peak);
	measure_growth(at, is_known);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void measure_steps(const struct measuring *at)
{
	const struct prepass *prepass = &at->prepass;
	enum step_rule rule = torsh_prepass_step_rule(prepass);
	uint64_t *durations;
	size_t n = 0, n_room = 0;

	for (size_t i = 0; i < prepass->n; i++)
		n_room += prepass->items[i].steps.rule == rule ? prepass->items[i].steps.n : 0;
	durations = torsh_need_items(NULL, 0, n_room, sizeof(*durations));
	for (size_t i = 0; i < prepass->n; i++) {
		const struct steps *steps = &prepass->items[i].steps;

		for (size_t k = 0; steps->rule == rule && k < steps->n; k++)
			durations[n++] = steps->items[k].end_ns - steps->items[k].start_ns;
	}
	set_total(at, COMPARE_step_median_ns, n, n ? torsh_change_median(durations, n) : 0);
	free(durations);
}

static void collect_operators(struct operators *operators, const struct measuring *at,
			      enum operator_group group)
{
	const struct operators_request request = {.group = group};

	torsh_operators_collect(operators, &request, at->of->recording, at->of->processes,
				at->of->n_processes, &at->prepass);
}

static void measure_operators(const struct measuring *at)
{
	struct operators operators = {0};

	collect_operators(&operators, at, OPERATORS_BY_NAME);
	for (size_t i = 0; i < operators.n; i++) {
		const struct operator_total *total = &operators.items[i];

		add_named(at, COMPARE_OPS, total->name, total->self_cpu_ns, total->self_flops_all);
	}
	torsh_operators_free(&operators);
	at->comparison->tables[COMPARE_OPS].n_measured++;
}

/* Operators by the user's line that ran them, and by their whole stack. */
static void measure_lines(const struct measuring *at)
{
	struct operators operators = {0};

	collect_operators(&operators, at, OPERATORS_BY_STACK);
	for (size_t i = 0; i < operators.n; i++) {
		const struct operator_total *total = &operators.items[i];
		struct place place;
		size_t n;
		const struct frame **frames = torsh_stack_frames(
			total->process, total->stack, at->of->symbols, STACK_VIEW_MERGED, &n);

		if (torsh_place_make_line(&place, frames, n))
			add_place(at, COMPARE_LINES, &place, total->self_cpu_ns,
				  total->self_flops_all);
		torsh_place_make(&place, frames, n,
				 torsh_intern(&at->comparison->texts, total->name));
		add_place(at, COMPARE_STACKS, &place, total->self_cpu_ns, total->self_flops_all);
		free(frames);
	}
	torsh_operators_free(&operators);
	at->comparison->tables[COMPARE_LINES].n_measured++;
	at->comparison->tables[COMPARE_STACKS].n_measured++;
}

static void measure_modules(const struct measuring *at)
{
	struct module_totals totals = {0};
	bool has_modules = false;

	for (size_t i = 0; i < at->prepass.n; i++)
		has_modules = has_modules || at->prepass.items[i].n_modules;
	if (!has_modules)
		return;
	torsh_module_totals_collect(&totals, at->of->recording, at->of->processes,
				    at->of->n_processes, &at->prepass);
	for (size_t i = 0; i < totals.n; i++) {
		const struct module_total *total = &totals.items[i];

		if (*total->name)
			add_named(at, COMPARE_MODULES, total->name, total->total_ns,
				  total->whole_flops_all);
	}
	torsh_module_totals_free(&totals);
	at->comparison->tables[COMPARE_MODULES].n_measured++;
}

static void measure_kernels(const struct measuring *at)
{
	struct kernels kernels = {0};

	torsh_kernels_collect(&kernels, at->of->recording, at->of->processes, at->of->n_processes,
			      &at->prepass);
	for (size_t i = 0; i < kernels.n; i++) {
		const struct kernel_row *row = &kernels.rows[i];

		add_named(at, COMPARE_KERNELS, row->name, row->total_ns, row->calls);
	}
	at->comparison->tables[COMPARE_KERNELS].n_measured += kernels.n != 0;
	torsh_kernels_free(&kernels);
}

/* ---- a run ----------------------------------------------------------------------------------- */

/*
 * Returns "train.py" for python3 train.py, else the program's name; the last program that ran in
 * the first process.
 */
static const char *program_of(const struct compare_run *of)
{
	const struct recorded_process *image = of->processes[0];

	for (size_t i = 1; i < of->n_processes; i++) {
		if (image->end == TORSH__PROCESS__END_KIND__EXECUTED &&
		    of->processes[i]->pid == image->pid)
			image = of->processes[i];
	}
	if (image->tables->has_python && image->n_arguments > 1 && *image->arguments[1] != '-')
		return torsh_place_file(image->arguments[1]);
	return torsh_recording_program_name(image);
}

void torsh_comparison_measure(struct comparison *comparison, size_t run,
			      const struct compare_run *of)
{
	struct measuring at = {.comparison = comparison, .run = run, .of = of};
	enum compare_side side = run >= comparison->n_runs[COMPARE_BEFORE];
	uint64_t every = torsh_recording_sampled_every(of->processes, of->n_processes);

	if (every > comparison->sampled_every[side])
		comparison->sampled_every[side] = every;
	if (!comparison->programs[side])
		comparison->programs[side] = torsh_intern(&comparison->texts, program_of(of));
	measure_memory(&at);
	torsh_prepass_make(&at.prepass, of->recording, of->processes, of->n_processes);
	if (!torsh_prepass_choose(&at.prepass, of->steps) && of->steps->is_some)
		torsh_die("%s has no such steps; torsh steps lists them", of->recording->path);
	measure_steps(&at);
	if (torsh_prepass_has_operators(&at.prepass))
		measure_operators(&at);
	if (at.prepass.has_stacks)
		measure_lines(&at);
	measure_modules(&at);
	measure_kernels(&at);
	torsh_prepass_free(&at.prepass);
}
