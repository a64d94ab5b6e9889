/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/device.h"
#include "tools/command/whatif/whatif_view.h"
#include "tools/report/parts.h"

static void emit_sums(struct json_writer *json, const char *name, const struct tensor_sums *sums)
{
	torsh_json_begin_object(json, name);
	torsh_json_put_u64(json, "reserved_bytes", sums->reserved);
	torsh_json_put_u64(json, "allocated_bytes", sums->allocated);
	torsh_json_end_object(json);
}

static void emit_failure(struct json_writer *json, const struct whatif_answer *answer)
{
	const struct trace_block *failed = &answer->failed;

	torsh_json_begin_object(json, "out_of_memory");
	torsh_json_put_known(json, "step", answer->has_step, answer->step);
	torsh_json_put_text(json, "operator", failed->operator_name);
	torsh_json_put_text(json, "module", failed->module);
	torsh_json_put_text(json, "phase",
			    failed->operator_name ? torsh_phase_names[failed->phase] : NULL);
	torsh_json_put_u64(json, "at_ns", failed->at_ns);
	torsh_json_put_u64(json, "bytes", failed->bytes);
	torsh_json_put_u64(json, "missing_bytes", answer->missing_bytes);
	torsh_json_put_u64(json, "reserved_bytes", answer->at_failure.reserved);
	torsh_json_put_u64(json, "allocated_bytes", answer->at_failure.allocated);
	torsh_json_end_object(json);
}

static void emit_capacity(struct json_writer *json, const struct whatif_view *view,
			  const struct whatif_answer *answer)
{
	if (!view->question.capacity_bytes) {
		torsh_json_put_null(json, "capacity");
		return;
	}
	torsh_json_begin_object(json, "capacity");
	torsh_json_put_u64(json, "bytes", view->question.capacity_bytes);
	torsh_json_put_bool(json, "fits", !answer->is_out_of_memory);
	if (answer->is_out_of_memory)
		emit_failure(json, answer);
	else
		torsh_json_put_null(json, "out_of_memory");
	torsh_json_end_object(json);
}

static void emit_assumptions(struct json_writer *json, const struct whatif_answer *answer)
{
	torsh_json_begin_array(json, "assumptions");
	for (size_t i = 0; i < answer->assumptions.n; i++)
		torsh_json_put_text(json, NULL, answer->assumptions.items[i]);
	torsh_json_end_array(json);
}

static void emit_device(struct json_writer *json, const struct whatif_view *view,
			const struct whatif_answer *answer)
{
	char name[DEVICE_NAME_BYTES];

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", answer->process->pid);
	torsh_json_put_text(json, "device", torsh_device_name(answer->device, name));
	emit_sums(json, "recorded", &answer->recorded);
	emit_sums(json, "replayed", &answer->replayed);
	torsh_json_put_rounded(json, "difference", answer->difference, 6);
	torsh_json_put_bool(json, "is_reliable", torsh_whatif_is_reliable(answer));
	emit_sums(json, "predicted", &answer->predicted);
	emit_capacity(json, view, answer);
	emit_assumptions(json, answer);
	torsh_json_end_object(json);
}

/* The members of the first device, for readers of runs that have one. */
static void emit_first(struct json_writer *json, const struct whatif_answer *answer)
{
	emit_sums(json, "recorded", &answer->recorded);
	emit_sums(json, "replayed", &answer->replayed);
	emit_sums(json, "predicted", &answer->predicted);
	emit_assumptions(json, answer);
}

void torsh_whatif_json(const struct whatif_view *view)
{
	const struct reading *reading = view->reading;
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_begin_object(&json, "changes");
	torsh_json_put_text(&json, "batch", view->request.batch);
	torsh_json_put_text(&json, "allocator", view->request.allocator);
	torsh_json_put_text(&json, "checkpoint", view->question.checkpoint);
	torsh_json_end_object(&json);
	if (view->whatif.n)
		emit_first(&json, &view->whatif.items[0]);
	torsh_json_begin_lines(&json, "devices");
	for (size_t i = 0; i < view->whatif.n; i++)
		emit_device(&json, view, &view->whatif.items[i]);
	torsh_json_end_array(&json);
	torsh_parts_emit_events(&json, reading->processes, reading->n_processes);
	torsh_parts_emit_recording(&json, reading->recording);
	torsh_parts_emit_notes(&json, reading->processes, reading->n_processes);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}
