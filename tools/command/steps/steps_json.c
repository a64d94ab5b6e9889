/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh steps as JSON; schema: tools/schema/steps.json. */
#include "tools/command/steps/steps_view.h"

#include "tools/base/json_writer.h"
#include "tools/ops/step_durations.h"
#include "tools/report/counters/cpu_counters.h"
#include "tools/report/counters/traffic_report.h"

static void emit_phases(struct json_writer *json, const struct step_total *total)
{
	torsh_json_begin_object(json, "phases");
	for (size_t i = 0; i < N_PHASES; i++)
		torsh_json_put_u64(json, torsh_phase_names[i], total->spent.phase_ns[i]);
	torsh_json_put_u64(json, "other", total->spent.other_ns);
	torsh_json_end_object(json);
}

static void emit_device_phases(struct json_writer *json, const struct shown_step *shown)
{
	if (!shown->totals->has_devices) {
		torsh_json_put_null(json, "device_phases");
		return;
	}
	torsh_json_begin_object(json, "device_phases");
	for (size_t i = 0; i < N_PHASES; i++)
		torsh_json_put_u64(json, torsh_phase_names[i], shown->total->phase_device_ns[i]);
	torsh_json_end_object(json);
}

static void emit_devices(struct json_writer *json, const struct shown_step *shown)
{
	torsh_json_begin_array(json, "devices");
	for (size_t i = 0; i < shown->totals->n_devices; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "device", shown->totals->devices[i]);
		torsh_json_put_u64(json, "device_ns", shown->devices[i].device_ns);
		torsh_json_put_u64(json, "busy_ns", shown->devices[i].busy_ns);
		torsh_json_put_double(json, "busy_share", torsh_shown_step_busy(shown, i));
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_step(struct json_writer *json, const struct shown_step *shown,
		      const struct recording *recording)
{
	bool has_flops = !recording->without_flops;
	const struct prepass_process *of = shown->of;
	const struct step *step = shown->step;
	const struct step_total *total = shown->total;
	struct memory_traffic traffic;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "index", step->number);
	torsh_json_put_u64(json, "pid", of->process->pid);
	torsh_json_put_u64(json, "start_ns", step->start_ns);
	torsh_json_put_u64(json, "duration_ns", step->end_ns - step->start_ns);
	torsh_json_put_text(json, "rule", torsh_step_rule_names[of->steps.rule]);
	torsh_json_put_text(json, "name", torsh_timeline_label(of->process, step->name));
	torsh_json_put_text(json, "kind", torsh_step_kind_names[step->kind]);
	torsh_json_put_known(json, "burst", of->steps.n_bursts, step->burst);
	torsh_json_put_u64(json, "calls", total->calls);
	torsh_json_put_known(json, "flops", has_flops, total->flops);
	torsh_json_put_known(json, "flops_all", has_flops, total->flops_all);
	torsh_json_put_known(json, "peak_bytes", of->n_tensors, total->peak_bytes);
	torsh_cpu_counters_emit(json, "counters", &total->counts);
	traffic = torsh_memory_traffic_in(&recording->memory_traffic, step->start_ns, step->end_ns);
	torsh_traffic_emit(json, "memory_traffic", &traffic);
	emit_phases(json, total);
	torsh_json_put_known(json, "device_ns", shown->totals->has_devices, total->device_ns);
	emit_device_phases(json, shown);
	emit_devices(json, shown);
	torsh_json_end_object(json);
}

static void print_item(void *context, const struct steps_view *view, const struct shown_step *shown)
{
	emit_step(context, shown, view->reading->recording);
}

/* While a process was in a phase, of all shown ones. */
static void emit_phase_traffic(struct json_writer *json, const struct steps_view *view)
{
	struct memory_traffic sums[N_PHASES + 1];

	torsh_steps_phase_traffic(view, sums);
	torsh_json_begin_object(json, "memory_traffic_of_phases");
	for (size_t i = 0; i < N_PHASES; i++)
		torsh_traffic_emit(json, torsh_phase_names[i], &sums[i]);
	torsh_traffic_emit(json, "other", &sums[N_PHASES]);
	torsh_json_end_object(json);
}

static void put_certainty(struct json_writer *json, const struct steps_view *view)
{
	if (view->n_steps)
		torsh_json_put_double(json, "certainty", view->certainty);
	else
		torsh_json_put_null(json, "certainty");
}

void torsh_steps_json(const struct steps_view *view, size_t n_limit)
{
	const struct reading *reading = view->reading;
	struct step_durations durations = torsh_step_durations_find(&view->prepass);
	struct traffic_report traffic;
	struct json_writer json;
	size_t n_left;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_text(&json, "rule", torsh_step_rule_names[view->rule]);
	torsh_json_put_text(&json, "rule_text", torsh_step_rule_texts[view->rule]);
	put_certainty(&json, view);
	torsh_json_put_known(&json, "median_ns", view->n_steps, durations.median_ns);
	torsh_json_put_known(&json, "p90_ns", view->n_steps, durations.p90_ns);
	torsh_json_put_known(&json, "p99_ns", view->n_steps, durations.p99_ns);
	torsh_json_put_u64(&json, "slow_first_steps", durations.n_slow_first);
	torsh_json_begin_lines(&json, "steps");
	n_left = torsh_steps_each(view, n_limit, &json, print_item);
	torsh_json_end_array(&json);
	torsh_json_put_u64(&json, "omitted", n_left);
	torsh_cpu_counters_emit_reason(&json, &view->prepass);
	torsh_traffic_report_make(&traffic, reading->recording, reading->processes,
				  reading->n_processes);
	torsh_traffic_report_emit(&json, &traffic);
	emit_phase_traffic(&json, view);
	torsh_reading_end_json(&json, reading, &view->prepass);
}
