/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/json_writer.h"
#include "tools/command/cpu/cpu_view.h"

static void emit_times(struct json_writer *json, const struct cpu_total *total)
{
	torsh_json_put_u64(json, "self_ns", total->self_ns);
	torsh_json_put_u64(json, "total_ns", total->total_ns);
	torsh_json_put_u64(json, "self_samples", total->self_n);
	torsh_json_put_u64(json, "total_samples", total->total_n);
}

static void emit_place(struct json_writer *json, const struct cpu_total *total)
{
	torsh_json_put_text(json, "function", total->name);
	torsh_json_put_text(json, "file", total->file);
	if (total->line)
		torsh_json_put_i64(json, "line", total->line);
	else
		torsh_json_put_null(json, "line");
	torsh_json_put_text(json, "library", total->library);
	torsh_json_put_bool(json, "python", total->is_python);
	emit_times(json, total);
}

static void emit_thread(struct json_writer *json, const struct cpu_total *total)
{
	const struct recorded_process *process = total->process;

	torsh_json_put_u64(json, "pid", process->pid);
	if (total->thread < process->n_threads)
		torsh_json_put_u64(json, "tid", process->threads[total->thread].tid);
	else
		torsh_json_put_null(json, "tid");
	torsh_json_put_text(json, "name", total->name);
	torsh_json_put_u64(json, "ns", total->self_ns);
	torsh_json_put_u64(json, "samples", total->self_n);
}

static void emit_step(struct json_writer *json, const struct cpu_total *total)
{
	torsh_json_put_u64(json, "pid", total->process->pid);
	torsh_json_put_u64(json, "step", total->step);
	torsh_json_put_u64(json, "ns", total->self_ns);
	torsh_json_put_u64(json, "samples", total->self_n);
}

static void emit_library(struct json_writer *json, const struct cpu_total *total)
{
	torsh_json_put_text(json, "name", total->name);
	emit_times(json, total);
}

static void emit_name(struct json_writer *json, const struct cpu_total *total)
{
	torsh_json_put_text(json, "name", total->name);
	torsh_json_put_u64(json, "ns", total->self_ns);
	torsh_json_put_u64(json, "samples", total->self_n);
}

/* Returns the number of totals that were left out. */
static size_t emit_group(struct json_writer *json, const struct cpu_view *view,
			 enum cpu_group group, const char *name,
			 void emit(struct json_writer *json, const struct cpu_total *total))
{
	struct cpu_totals totals;
	size_t n, n_omitted;

	torsh_cpu_view_totals(view, group, &totals);
	n = torsh_options_limit(view->options, totals.n, CPU_TEXT_LIMIT);
	n_omitted = totals.n - n;
	torsh_json_begin_lines(json, name);
	for (size_t i = 0; i < n; i++) {
		torsh_json_begin_object(json, NULL);
		emit(json, &totals.items[i]);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_cpu_totals_free(&totals);
	return n_omitted;
}

static void emit_sampling(struct json_writer *json, const struct cpu_sampling *sampling,
			  bool has_samples)
{
	bool is_sampled = sampling && sampling->source;

	if (sampling && (is_sampled || has_samples))
		torsh_json_put_rounded(json, "hz", 1e9 / (double)sampling->period_ns, 6);
	else
		torsh_json_put_null(json, "hz");
	torsh_json_put_known(json, "asked_hz", sampling, sampling ? sampling->asked_hz : 0);
	torsh_json_put_text(json, "source", sampling ? torsh_cpu_source(sampling->source) : NULL);
	torsh_json_put_text(json, "reason",
			    sampling ? sampling->reason : "samples were not asked for");
	torsh_json_put_known(json, "signal", is_sampled, is_sampled ? sampling->signal : 0);
}

/* null: no process recorded them. */
static void emit_gc(struct json_writer *json, const struct cpu_view *view)
{
	if (!torsh_cpu_view_has_gc(view)) {
		torsh_json_put_null(json, "gc");
		return;
	}
	torsh_json_begin_array(json, "gc");
	for (uint64_t i = 0; i < CPU_GC_GENERATIONS; i++) {
		const struct cpu_gc *gc = &view->samples.gc[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "generation", i);
		torsh_json_put_u64(json, "runs", gc->n);
		torsh_json_put_u64(json, "total_ns", gc->ns);
		torsh_json_put_u64(json, "longest_ns", gc->longest_ns);
		torsh_json_put_u64(json, "collected", gc->n_collected);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

void torsh_cpu_print_json(const struct cpu_view *view)
{
	const struct cpu_samples *samples = &view->samples;
	struct json_writer json;
	size_t n_omitted = 0;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_u64(&json, "samples", samples->n_samples);
	torsh_json_put_u64(&json, "ns", samples->ns);
	emit_sampling(&json, torsh_cpu_view_sampling(view), samples->n_samples);
	torsh_json_put_u64(&json, "lost", samples->n_lost);
	torsh_json_put_u64(&json, "without_stack", samples->n_without_stack);
	n_omitted += emit_group(&json, view, CPU_BY_FUNCTION, "functions", emit_place);
	n_omitted += emit_group(&json, view, CPU_BY_LINE, "lines", emit_place);
	n_omitted += emit_group(&json, view, CPU_BY_LIBRARY, "libraries", emit_library);
	n_omitted += emit_group(&json, view, CPU_BY_THREAD, "threads", emit_thread);
	n_omitted += emit_group(&json, view, CPU_BY_OPERATOR, "operators", emit_name);
	n_omitted += emit_group(&json, view, CPU_BY_MODULE, "modules", emit_name);
	n_omitted += emit_group(&json, view, CPU_BY_PHASE, "phases", emit_name);
	n_omitted += emit_group(&json, view, CPU_BY_STEP, "steps", emit_step);
	emit_gc(&json, view);
	torsh_json_put_u64(&json, "omitted", n_omitted);
	torsh_reading_end_json(&json, view->reading, &view->prepass);
}
