/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/json_writer.h"
#include "tools/command/cpu/cpu_off.h"
#include "tools/report/parts.h"

#define NOT_RECORDED \
	"waits were not recorded: TORSH_PROFILER_ACTIVITIES does not name waits, or no process ended"

static void emit_sum(struct json_writer *json, const struct wait_sum *sum)
{
	torsh_json_put_u64(json, "count", sum->n);
	torsh_json_put_u64(json, "total_ns", sum->total_ns);
	torsh_json_put_u64(json, "longest_ns", sum->longest_ns);
	torsh_json_put_u64(json, "unfinished", sum->n_unfinished);
}

static void emit_kinds(struct json_writer *json, const char *name, const struct wait_sum *by_kind)
{
	torsh_json_begin_array(json, name);
	for (uint32_t kind = 0; kind < N_THREAD_WAIT_KINDS; kind++) {
		if (!by_kind[kind].n && !by_kind[kind].n_shorter)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "kind", torsh_wait_kind_names[kind]);
		emit_sum(json, &by_kind[kind]);
		torsh_json_put_u64(json, "shorter_count", by_kind[kind].n_shorter);
		torsh_json_put_u64(json, "shorter_ns", by_kind[kind].shorter_ns);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_site(struct json_writer *json, const struct cpu_off_view *view,
		      const struct wait_site *site)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "kind", torsh_wait_kind_names[site->kind]);
	emit_sum(json, &site->sum);
	torsh_json_put_u64(json, "threads", site->n_threads);
	torsh_json_put_u64(json, "pid", site->process->pid);
	torsh_json_put_text(json, "operator", torsh_timeline_label(site->process, site->operator));
	torsh_parts_emit_recorded_stack(json, site->process, site->stack, view->reading->symbols,
					view->options->view);
	torsh_json_end_object(json);
}

static void emit_thread(struct json_writer *json, const struct wait_thread *thread)
{
	uint32_t tid;
	const char *name = torsh_wait_thread_name(thread->process, thread->thread, &tid);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", thread->process->pid);
	torsh_json_put_known(json, "tid", tid, tid);
	torsh_json_put_text(json, "name", name);
	emit_sum(json, &thread->all);
	torsh_json_put_u64(json, "shorter_count", thread->all.n_shorter);
	torsh_json_put_u64(json, "shorter_ns", thread->all.shorter_ns);
	emit_kinds(json, "kinds", thread->by_kind);
	torsh_json_end_object(json);
}

static void emit_waker(struct json_writer *json, const struct wait_waker *row)
{
	uint32_t tid, waker_tid = 0;
	const char *name = torsh_wait_thread_name(row->process, row->thread, &tid),
		   *waker_name = row->waker ? torsh_wait_thread_name(row->process, row->waker - 1,
								     &waker_tid)
					    : NULL;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "kind", torsh_wait_kind_names[row->kind]);
	torsh_json_put_u64(json, "pid", row->process->pid);
	torsh_json_put_known(json, "tid", tid, tid);
	torsh_json_put_text(json, "name", name);
	torsh_json_put_known(json, "waker_tid", waker_tid, waker_tid);
	torsh_json_put_text(json, "waker_name", waker_name);
	torsh_json_put_u64(json, "count", row->n);
	torsh_json_put_u64(json, "total_ns", row->total_ns);
	torsh_json_end_object(json);
}

/* Returns how many rows are left out. */
static size_t emit_wakers(struct json_writer *json, const struct cpu_off_view *view)
{
	size_t n = torsh_options_limit(view->options, view->wakers.n, view->wakers.n);

	torsh_json_begin_lines(json, "wakers");
	for (size_t i = 0; i < n; i++)
		emit_waker(json, &view->wakers.items[i]);
	torsh_json_end_array(json);
	return view->wakers.n - n;
}

static void emit_step(struct json_writer *json, const struct prepass_process *of, size_t i,
		      const struct step_parts *parts)
{
	const struct step *step = &of->steps.items[i];

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "index", step->number);
	torsh_json_put_u64(json, "pid", of->process->pid);
	torsh_json_put_u64(json, "start_ns", step->start_ns);
	torsh_json_put_u64(json, "duration_ns", step->end_ns - step->start_ns);
	torsh_json_begin_object(json, "parts");
	for (int part = 0; part < N_STEP_PARTS; part++)
		torsh_json_put_u64(json, torsh_step_part_names[part], parts[i].ns[part]);
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}

/* Returns how many steps are left out. */
static size_t emit_steps(struct json_writer *json, const struct cpu_off_view *view)
{
	size_t n = torsh_options_limit(view->options, view->n_steps, view->n_steps), n_done = 0;

	torsh_json_begin_lines(json, "steps");
	for (size_t i = 0; i < view->prepass.n; i++) {
		for (size_t k = 0;
		     view->parts[i] && k < view->prepass.items[i].steps.n && n_done < n;
		     k++, n_done++)
			emit_step(json, &view->prepass.items[i], k, view->parts[i]);
	}
	torsh_json_end_array(json);
	return view->n_steps - n_done;
}

void torsh_cpu_off_json(const struct cpu_off_view *view)
{
	const struct waits *waits = &view->waits;
	size_t n = torsh_options_limit(view->options, waits->n_sites, waits->n_sites);
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_text(&json, "reason", view->is_recorded ? NULL : NOT_RECORDED);
	torsh_json_begin_lines(&json, "waits");
	for (size_t i = 0; i < n; i++)
		emit_site(&json, view, &waits->sites[i]);
	torsh_json_end_array(&json);
	torsh_json_put_u64(&json, "omitted", waits->n_sites - n);
	torsh_json_begin_lines(&json, "threads");
	for (size_t i = 0; i < waits->n_threads; i++)
		emit_thread(&json, &waits->threads[i]);
	torsh_json_end_array(&json);
	emit_kinds(&json, "kinds", waits->by_kind);
	torsh_json_put_u64(&json, "wakers_omitted", emit_wakers(&json, view));
	torsh_json_put_u64(&json, "steps_omitted", emit_steps(&json, view));
	torsh_reading_end_json(&json, view->reading, &view->prepass);
}
