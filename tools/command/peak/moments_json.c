/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdio.h>

#include "tools/command/peak/moments_view.h"
#include "tools/report/parts.h"

static void emit_moment(struct json_writer *json, const char *name,
			const struct memory_moment *moment, const struct moment_request *request)
{
	bool is_of_time = request->kind == MOMENT_OF_TIME;
	uint64_t asked = request->number;

	if (!moment) {
		torsh_json_put_null(json, name);
		return;
	}
	torsh_json_begin_object(json, name);
	torsh_json_put_text(json, "kind", torsh_memory_moment_names[moment->kind]);
	torsh_json_put_text(json, "mark", moment->mark);
	torsh_json_put_known(json, "step", moment->has_step, moment->step);
	torsh_json_put_u64(json, "at_ns", moment->at_ns);
	torsh_json_put_known(json, "requested_ns", is_of_time, asked);
	torsh_json_put_known(json, "distance_ns", is_of_time,
			     asked > moment->at_ns ? asked - moment->at_ns : moment->at_ns - asked);
	torsh_json_put_u64(json, "bytes", moment->bytes);
	torsh_json_put_u64(json, "blocks", moment->blocks);
	torsh_json_put_known(json, "resident_bytes", moment->kind == MEMORY_AT_RSS,
			     moment->resident_bytes);
	torsh_json_end_object(json);
}

static void emit_processes(struct json_writer *json, const struct moments_view *view)
{
	const struct moments_request *request = view->request;

	torsh_json_begin_lines(json, "moments");
	for (size_t i = 0; i < view->reading->n_processes; i++) {
		const struct process_moments *of = &view->items[i];
		struct moment_request at;

		if (!of->at)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "pid", of->all.process->pid);
		torsh_json_put_text(json, "program", of->all.process->program);
		at = torsh_moments_request_of(view, of);
		emit_moment(json, "at", of->at, &at);
		emit_moment(json, "since", of->since, &request->since);
		torsh_json_put_known(json, "rss_peak_bytes", of->all.process->has_rss_peak,
				     of->all.process->rss_peak_bytes);
		if (of->devices) {
			torsh_device_joint_json(json, of->devices);
			torsh_json_put_bool(json, "is_exact", torsh_moments_is_joint(of));
		}
		torsh_json_put_u64(json, "kept_moments", of->all.n_kept);
		torsh_json_put_u64(json, "damaged_moments", of->all.n_damaged);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_window(struct json_writer *json, const struct moments_view *view)
{
	struct window_sum highest = {0};

	if (!view->is_window) {
		torsh_json_put_null(json, "window");
		return;
	}
	if (view->chosen)
		highest = view->chosen->highest;
	torsh_json_begin_object(json, "window");
	torsh_json_put_u64(json, "from_ns", view->from_ns);
	torsh_json_put_known(json, "to_ns", view->to_ns != UINT64_MAX, view->to_ns);
	torsh_json_put_bool(json, "has_peak", view->has_peak);
	torsh_json_put_known(json, "highest_bytes", highest.is_known, highest.bytes);
	torsh_json_put_known(json, "highest_ns", highest.is_known, highest.at_ns);
	torsh_json_put_bool(json, "is_exact", highest.is_exact);
	torsh_json_put_u64(json, "curve_bytes", view->curve_bytes);
	torsh_json_put_u64(json, "curve_ns", view->curve_ns);
	torsh_json_end_object(json);
}

/* is_less: bytes and blocks were freed. */
static void emit_sites(struct json_writer *json, const char *name,
		       const struct allocation_sites *sites, size_t n, bool is_less)
{
	torsh_json_begin_lines(json, name);
	for (size_t i = 0; i < n; i++) {
		const struct allocation_site *site = &sites->items[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_i64(json, "bytes",
				   (int64_t)(is_less ? 0 - site->bytes : site->bytes));
		torsh_json_put_i64(json, "blocks",
				   (int64_t)(is_less ? 0 - site->blocks : site->blocks));
		torsh_json_put_u64(json, "pid", site->process->pid);
		torsh_parts_emit_scope(json, site);
		torsh_parts_emit_stack(json, site->frames, site->n_frames);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_age(struct json_writer *json, const struct moments_view *view)
{
	const struct age *age = &view->request->age;

	if (!view->request->has_age)
		return;
	torsh_json_begin_object(json, "alive_for");
	torsh_json_put_known(json, "age_ns", !age->n_steps, age->ns);
	torsh_json_put_known(json, "steps", age->n_steps, age->n_steps);
	torsh_json_end_object(json);
	torsh_json_begin_object(json, "undecided");
	torsh_json_put_u64(json, "bytes", view->undecided_bytes);
	torsh_json_put_u64(json, "blocks", view->undecided_blocks);
	emit_sites(json, "holders", &view->undecided, view->n_undecided, false);
	torsh_parts_emit_omitted(json, &view->undecided, view->n_undecided);
	torsh_json_end_object(json);
}

void torsh_moments_json(const struct moments_view *view)
{
	const struct reading *reading = view->reading;
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_bool(&json, "is_change", view->is_change);
	torsh_json_put_i64(&json, "bytes", (int64_t)view->bytes);
	torsh_json_put_i64(&json, "blocks", (int64_t)view->blocks);
	emit_processes(&json, view);
	emit_window(&json, view);
	emit_sites(&json, "holders", &view->held, view->n_held, false);
	torsh_parts_emit_omitted(&json, &view->held, view->n_held);
	emit_age(&json, view);
	emit_sites(&json, "given_back", &view->shrunk, view->n_shrunk, true);
	torsh_json_put_i64(&json, "given_back_bytes", (int64_t)view->shrunk_bytes);
	torsh_json_put_u64(&json, "given_back_omitted", view->shrunk.n - view->n_shrunk);
	torsh_parts_emit_events(&json, reading->processes, reading->n_processes);
	torsh_parts_emit_recording(&json, reading->recording);
	torsh_parts_emit_notes(&json, reading->processes, reading->n_processes);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}
