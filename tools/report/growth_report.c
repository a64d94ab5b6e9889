/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/growth_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/base/size.h"
#include "tools/memory/leaks/rules/growth_rules.h"
#include "tools/report/parts.h"
#include "tools/report/sites/site_rows.h"
#include "tools/report/text.h"

static const char *const growth_over[] = {
	[GROWTH_OVER_STEPS] = "steps",
	[GROWTH_OVER_TIME] = "time",
};

static void emit_grown(struct json_writer *json, const struct growth_view *view,
		       const struct allocation_site *site)
{
	struct growth_rate rate = torsh_growth_rate(site);
	char *kept_by = torsh_holder_name(&view->holders, site);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_double(json, "bytes_per_step", rate.bytes);
	torsh_json_put_double(json, "bytes_per_step_error", rate.bytes_error);
	torsh_json_put_double(json, "blocks_per_step", rate.blocks);
	torsh_json_put_double(json, "blocks_per_step_error", rate.blocks_error);
	torsh_json_put_double(json, "span", site->growth_span);
	torsh_json_put_u64(json, "steps", site->process->steps.late_steps);
	torsh_json_put_text(json, "kind", site->is_of_tensors ? "tensor" : "block");
	torsh_json_put_u64(json, "bytes", site->bytes);
	torsh_json_put_u64(json, "blocks", site->blocks);
	torsh_json_put_text(json, "kept_by", kept_by);
	torsh_json_put_text(json, "operator", torsh_site_operator(site));
	torsh_json_put_text(json, "module", torsh_site_module(site));
	torsh_json_put_u64(json, "pid", site->process->pid);
	torsh_parts_emit_stack(json, site->frames, site->n_frames);
	torsh_json_end_object(json);
	free(kept_by);
}

static void emit_processes(struct json_writer *json, const struct growth_view *view)
{
	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < view->n_processes; i++) {
		torsh_parts_begin_process(json, view->processes[i]);
		torsh_json_put_u64(json, "steps", view->processes[i]->steps.n_steps);
		torsh_json_put_text(json, "rule", torsh_growth_rule(view->processes[i]));
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_sum(struct json_writer *json, const char *key, const struct counted_sites *sum)
{
	torsh_json_begin_object(json, key);
	torsh_json_put_u64(json, "groups", sum->n);
	torsh_json_put_u64(json, "bytes", sum->bytes);
	torsh_json_put_u64(json, "blocks", sum->blocks);
	torsh_json_end_object(json);
}

void torsh_growth_json(const struct growth_view *view)
{
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_u64(&json, "steps", view->growth->n_steps);
	torsh_json_put_text(&json, "over", growth_over[view->growth->over]);
	torsh_json_put_bool(&json, "enough_steps", view->growth->is_enough);
	torsh_json_begin_lines(&json, "growth");
	for (size_t i = 0; i < view->n_shown; i++)
		emit_grown(&json, view, &view->growth->found.items[i]);
	torsh_json_end_array(&json);
	torsh_parts_emit_omitted(&json, &view->growth->found, view->n_shown);
	emit_sum(&json, "small", &view->growth->small);
	emit_sum(&json, "suppressed", &view->growth->suppressed);
	torsh_parts_emit_events(&json, view->processes, view->n_processes);
	emit_processes(&json, view);
	torsh_parts_emit_recording(&json, view->recording);
	torsh_parts_emit_notes(&json, view->processes, view->n_processes);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}

static void print_heading_of_time(const struct growth *growth)
{
	printf("No steps are known: nothing marked one. A program can mark them (torsh.h, "
	       "torsh.py).\n");
	torsh_text_heading(stdout, "%s",
			   !growth->is_enough ? "Its time is too short to decide what grows."
			   : growth->found.n  ? "What grows, over time"
					      : "Nothing grows, over time.");
}

static void print_heading(const struct growth *growth)
{
	char steps[SIZE_TEXT_BYTES];

	if (growth->over == GROWTH_OVER_TIME)
		print_heading_of_time(growth);
	else if (!growth->is_enough)
		torsh_text_heading(stdout, "%s steps are too few to decide what grows.",
				   torsh_size_grouped(growth->n_steps, steps));
	else if (!growth->found.n)
		torsh_text_heading(stdout, "Nothing grows, over %s steps.",
				   torsh_size_grouped(growth->n_steps, steps));
	else
		torsh_text_heading(stdout, "What grows, over %s steps",
				   torsh_size_grouped(growth->n_steps, steps));
}

static void print_small(const struct growth *growth)
{
	char groups[SIZE_TEXT_BYTES], bytes[SIZE_TEXT_BYTES];

	if (growth->small.n)
		printf("... and %s of less than 0.1 %% of the growth, %s together\n",
		       torsh_size_counted(growth->small.n, "stack", groups),
		       torsh_size_human(growth->small.bytes, bytes));
}

static void print_suppressed(const struct growth *growth)
{
	char groups[SIZE_TEXT_BYTES], bytes[SIZE_TEXT_BYTES];

	if (growth->suppressed.n)
		printf("suppressed by rules: %s, %s together\n",
		       torsh_size_counted(growth->suppressed.n, "stack", groups),
		       torsh_size_human(growth->suppressed.bytes, bytes));
}

void torsh_growth_text(const struct growth_view *view)
{
	const struct growth *growth = view->growth;

	torsh_text_missing(stdout, view->recording, view->processes, view->n_processes);
	print_heading(growth);
	for (size_t i = 0; i < view->n_processes; i++) {
		if (torsh_growth_rule(view->processes[i]))
			printf("steps of pid %" PRIu32 ": %" PRIu64 ", by %s\n",
			       view->processes[i]->pid, view->processes[i]->steps.n_steps,
			       torsh_growth_rule(view->processes[i]));
	}
	torsh_text_notes(stdout, view->recording, view->processes, view->n_processes);
	torsh_site_rows_print(stdout, &(struct site_rows){
					      .heading = "GREW",
					      .items = growth->found.items,
					      .n = view->n_shown,
					      .with_pid = view->n_processes > 1,
					      .has_growth = true,
					      .is_over_time = growth->over == GROWTH_OVER_TIME,
					      .max_rows = view->max_rows,
					      .holders = &view->holders,
				      });
	torsh_text_smaller(stdout, growth->found.n - view->n_shown);
	print_small(growth);
	print_suppressed(growth);
}

void torsh_overview_growth(struct growth *growth, const struct overview *overview)
{
	if (overview->leaks.blocks > torsh_leaks_kept(&overview->leaks).blocks)
		*growth = (struct growth){.found.view = overview->leaks.found.view};
	else
		torsh_overview_all_growth(growth, overview);
}

void torsh_overview_all_growth(struct growth *growth, const struct overview *overview)
{
	*growth = (struct growth){.found.view = overview->leaks.found.view};
	torsh_growth_find(growth, overview->processes, overview->n_processes);
	torsh_growth_suppress(growth, overview->suppress, overview->symbols);
	torsh_sites_merge_stacks(&growth->found, overview->symbols);
	torsh_sites_merge_alike(&growth->found, overview->symbols);
	torsh_sites_sort(&growth->found, ORDER_BYTES);
	torsh_sites_name(&growth->found, overview->symbols, growth->found.n ? 1 : 0);
}
