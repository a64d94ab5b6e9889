/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/events_json_head.h"

#include "tools/timeline/prepass/prepass.h"

static void put_processes(struct json_writer *json, const struct trace *trace)
{
	torsh_json_begin_lines(json, "processes");
	for (size_t i = 0; i < trace->n_processes; i++) {
		const struct recorded_process *process = trace->processes[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "process", process->number);
		torsh_json_put_u64(json, "pid", process->pid);
		torsh_json_put_u64(json, "parent_pid", process->parent_pid);
		torsh_json_put_text(json, "program", process->program);
		torsh_json_put_text(json, "rank", process->rank);
		torsh_identity_put_json(json, &process->identity);
		torsh_json_put_u64(json, "start_ns", process->start_ns);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void put_steps(struct json_writer *json, const struct trace *trace)
{
	torsh_json_begin_lines(json, "steps");
	for (size_t i = 0; i < trace->n_processes; i++) {
		const struct steps *steps =
			&torsh_prepass_of(trace->prepass, trace->processes[i])->steps;

		for (size_t k = 0; k < steps->n; k++) {
			if (!torsh_trace_has(trace, steps->items[k].start_ns))
				continue;
			torsh_json_begin_object(json, NULL);
			torsh_json_put_u64(json, "process", trace->processes[i]->number);
			torsh_json_put_u64(json, "number", steps->items[k].number);
			torsh_json_put_u64(json, "start_ns", steps->items[k].start_ns);
			torsh_json_put_u64(json, "end_ns", steps->items[k].end_ns);
			torsh_json_put_text(json, "rule", torsh_step_rule_names[steps->rule]);
			torsh_json_end_object(json);
		}
	}
	torsh_json_end_array(json);
}

void torsh_events_put_head(struct json_writer *json, const struct trace *trace)
{
	const struct recording *recording = trace->recording;

	torsh_json_begin_report(json);
	torsh_json_put_u64(json, "version", 1);
	torsh_json_put_u64(json, "start_realtime_ns", recording->start_realtime_ns);
	torsh_json_put_text(json, "host", recording->host ? recording->host : "");
	put_processes(json, trace);
	put_steps(json, trace);
}
