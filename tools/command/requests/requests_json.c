/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <inttypes.h>
#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/command/requests/requests_view.h"
#include "tools/recording/timeline.h"
#include "tools/report/parts.h"

#define KEPT_LIMIT 20
#define SPAN_BYTES 17u
#define SHARED \
	"its thread may have worked for others: give torsh.asgi or torsh.request, outside of uvloop"

/* What threads did. is_known: false: null. */
static void emit_sum(struct json_writer *json, const struct requests_view *view,
		     const struct recorded_task_sum *sum, bool is_known)
{
	const struct task_rows *rows = &view->rows;

	torsh_json_put_known(json, "turns", is_known, sum->turns);
	torsh_json_put_known(json, "run_ns", is_known, sum->run_ns);
	torsh_json_put_known(json, "cpu_ns", is_known, sum->cpu_ns);
	torsh_json_put_known(json, "waits", is_known && rows->has_waits, sum->waits);
	torsh_json_put_known(json, "wait_ns", is_known && rows->has_waits, sum->wait_ns);
	torsh_json_put_known(json, "allocations", is_known && !rows->is_sampled, sum->allocs);
	torsh_json_put_known(json, "allocated_bytes", is_known, sum->alloc_bytes);
	torsh_json_put_text(json, "reason", is_known ? NULL : SHARED);
}

static void emit_kept(struct json_writer *json, const struct requests_view *view,
		      const struct task_row *row)
{
	size_t n = torsh_options_limit(view->options, row->n_kept, KEPT_LIMIT);

	n = n < KEPT_LIMIT ? n : KEPT_LIMIT;
	torsh_json_begin_array(json, "kept");
	for (size_t i = 0; i < n; i++) {
		const struct task_kept *kept = &row->kept[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_known(json, "blocks", !view->rows.is_sampled, kept->blocks);
		torsh_json_put_u64(json, "bytes", kept->bytes);
		torsh_json_put_u64(json, "pid", kept->process->pid);
		torsh_parts_emit_recorded_stack(json, kept->process, kept->stack,
						view->reading->symbols, view->options->view);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "kept_omitted", row->n_kept - n);
}

static void emit_row(struct json_writer *json, const struct requests_view *view,
		     const struct task_row *row)
{
	bool is_known = !torsh_requests_is_shared(row);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "kind", torsh_task_kind_names[row->kind]);
	torsh_json_put_text(json, "name", row->name);
	torsh_json_put_u64(json, "count", row->n_begun);
	torsh_json_put_u64(json, "ended", row->n_ended);
	torsh_json_put_u64(json, "shared", row->n_shared);
	torsh_json_put_u64(json, "total_ns", row->total_ns);
	torsh_json_put_known(json, "min_ns", row->n_ended, row->min_ns);
	torsh_json_put_known(json, "p50_ns", row->n_ended, row->p50_ns);
	torsh_json_put_known(json, "p99_ns", row->n_ended, row->p99_ns);
	torsh_json_put_known(json, "max_ns", row->n_ended, row->max_ns);
	emit_sum(json, view, &row->sum, is_known);
	torsh_json_put_known(json, "keeping", is_known, row->n_keeping);
	torsh_json_put_known(json, "kept_blocks", is_known && !view->rows.is_sampled,
			     row->kept_blocks);
	torsh_json_put_known(json, "kept_bytes", is_known, row->kept_bytes);
	emit_kept(json, view, row);
	torsh_json_end_object(json);
}

static void emit_single(struct json_writer *json, const struct requests_view *view,
			const struct task_single *single)
{
	const struct recorded_task *task = single->task;
	bool is_known = !task->is_shared, has_blocks = is_known && !view->rows.is_sampled;
	char trace[REQUESTS_TRACE_BYTES], span[SPAN_BYTES];

	snprintf(span, sizeof(span), "%016" PRIx64, task->span);
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "kind", torsh_task_kind_names[single->row->kind]);
	torsh_json_put_text(json, "name", single->row->name);
	torsh_json_put_text(json, "task", torsh_timeline_label(single->process, task->task));
	torsh_json_put_u64(json, "pid", single->process->pid);
	torsh_json_put_text(json, "trace_id", torsh_requests_trace(task, trace));
	torsh_json_put_text(json, "span_id", task->span ? span : NULL);
	torsh_json_put_u64(json, "start_ns", task->begin_ns);
	torsh_json_put_known(json, "duration_ns", task->has_ended, task->duration_ns);
	emit_sum(json, view, &task->sum, is_known);
	torsh_json_put_known(json, "peak_bytes", is_known, task->peak_bytes);
	torsh_json_put_known(json, "end_blocks", has_blocks && task->has_ended, task->end_blocks);
	torsh_json_put_known(json, "end_bytes", is_known && task->has_ended, task->end_bytes);
	torsh_json_put_known(json, "kept_blocks", has_blocks && task->has_ended, task->live_blocks);
	torsh_json_put_known(json, "kept_bytes", is_known && task->has_ended, task->live_bytes);
	torsh_json_end_object(json);
}

void torsh_requests_json(const struct requests_view *view)
{
	const struct reading *reading = view->reading;
	const struct task_rows *rows = &view->rows;
	size_t n = torsh_options_limit(view->options, rows->n, rows->n);
	size_t n_singles = torsh_options_limit(view->options, rows->n_singles, rows->n_singles);
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_begin_lines(&json, "names");
	for (size_t i = 0; i < n; i++)
		emit_row(&json, view, view->order[i]);
	torsh_json_end_array(&json);
	torsh_json_put_u64(&json, "omitted", rows->n - n);
	torsh_json_begin_lines(&json, "requests");
	for (size_t i = 0; i < n_singles; i++)
		emit_single(&json, view, &rows->singles[i]);
	torsh_json_end_array(&json);
	torsh_json_put_u64(&json, "requests_omitted", rows->n_singles - n_singles);
	torsh_json_put_u64(&json, "requests_unkept", rows->n_unkept);
	torsh_parts_emit_events(&json, reading->processes, reading->n_processes);
	torsh_parts_emit_recording(&json, reading->recording);
	torsh_parts_emit_notes(&json, reading->processes, reading->n_processes);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}
