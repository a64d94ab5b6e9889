/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/process_pass.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/ranks/fold/sketch.h"
#include "tools/ranks/make/c10d_source.h"
#include "tools/ranks/make/mpi_source.h"
#include "tools/ranks/make/nccl_source.h"

struct passing {
	struct process_pass *pass;
	struct fold *fold;
	struct call_paths *paths;
	struct c10d_source c10d;
	struct nccl_source nccl;
	struct mpi_source mpi;
	struct phase_lanes lanes;
	struct device_join *join;
	int64_t held_bytes;
	size_t n_entered; /* steps that began before the last tensor event */
};

/* ---- spans ----------------------------------------------------------------------------------- */

/* Nodes of spans are kept in what is the visitor's. */
static uint32_t node_of(const struct span *span)
{
	return span ? (uint32_t)(uintptr_t)span->own : 0;
}

/* Operators that compute: not autograd's scopes around them, and not communication. */
static bool is_computing(const struct span *span)
{
	return span->kind == SPAN_OPERATOR && span->scope == OP_FUNCTION &&
	       strncmp(torsh_span_name(span), "autograd::", 10) != 0 &&
	       !torsh_c10d_is_communication(span);
}

static bool is_outermost_computing(const struct span *span)
{
	if (!is_computing(span))
		return false;
	for (const struct span *outer = span->outer; outer; outer = outer->outer) {
		if (is_computing(outer))
			return false;
	}
	return true;
}

static void see_begin(void *context, struct span *span)
{
	struct passing *passing = context;
	bool is_operator = span->kind == SPAN_OPERATOR;

	torsh_phase_lanes_begin(&passing->lanes, span);
	span->own =
		(void *)(uintptr_t)torsh_call_path_span(passing->paths, span, node_of(span->outer));
	if (!is_operator)
		return;
	torsh_c10d_begin(&passing->c10d, span, passing->pass->sums.operators);
	passing->pass->sums.operators += is_computing(span);
}

static void add_span(struct passing *passing, const struct span *span)
{
	const struct steps *steps = passing->pass->steps;
	size_t step = torsh_steps_of(steps, span->start_ns, span->thread);
	uint64_t ns = span->end_ns - span->start_ns, one = 1;
	uint64_t inner_ns = span->inner_ns < ns ? span->inner_ns : ns;
	const uint64_t values[N_FOLD_SPANS] = {
		[FOLD_SPANS_count] = 1,
		[FOLD_SPANS_sum_ns] = ns,
		[FOLD_SPANS_self_ns] = ns - inner_ns,
		[FOLD_SPANS_min_ns] = ns,
		[FOLD_SPANS_max_ns] = ns,
	};

	torsh_fold_add(passing->fold, FOLD_SPANS, node_of(span),
		       torsh_fold_step_sub(passing->fold, step == STEP_NONE ? SIZE_MAX : step),
		       values);
	torsh_fold_add(passing->fold, FOLD_DURATIONS, node_of(span), torsh_sketch_bucket(ns), &one);
}

static void see_end(void *context, struct span *span)
{
	struct passing *passing = context;

	torsh_phase_lanes_end(&passing->lanes, span);
	torsh_c10d_end(&passing->c10d, span);
	if (span->is_cut)
		return;
	add_span(passing, span);
	if (span->traits & NAME_DATA)
		torsh_busy_add(&passing->pass->data, span->start_ns, span->end_ns);
	if (is_outermost_computing(span))
		torsh_busy_add(&passing->pass->compute, span->start_ns, span->end_ns);
}

/* ---- other events ---------------------------------------------------------------------------- */

/* Each step begins with the tensors that are alive then. */
static void enter_steps(struct passing *passing, uint64_t at_ns)
{
	const struct steps *steps = passing->pass->steps;

	for (; passing->n_entered < steps->n && steps->items[passing->n_entered].start_ns <= at_ns;
	     passing->n_entered++)
		passing->pass->tensor_peaks[passing->n_entered] =
			passing->held_bytes > 0 ? (uint64_t)passing->held_bytes : 0;
}

static void see_tensor(struct passing *passing, const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct process_pass *pass = passing->pass;
	size_t step;

	enter_steps(passing, event->at_ns);
	passing->held_bytes += tensor->is_free ? -(int64_t)tensor->bytes : (int64_t)tensor->bytes;
	if (passing->held_bytes <= 0)
		return;
	if ((uint64_t)passing->held_bytes > pass->sums.tensor_peak_bytes)
		pass->sums.tensor_peak_bytes = (uint64_t)passing->held_bytes;
	step = torsh_steps_of(pass->steps, event->at_ns, event->thread);
	if (step != STEP_NONE && (uint64_t)passing->held_bytes > pass->tensor_peaks[step])
		pass->tensor_peaks[step] = (uint64_t)passing->held_bytes;
}

static void see_gc(struct process_pass *pass, const struct event_python_gc *run)
{
	pass->sums.gc_runs++;
	pass->sums.gc_ns += run->duration_ns;
	torsh_busy_add(&pass->gc, run->begin, run->begin + run->duration_ns);
}

static void see_room(struct pass_sums *sums, const struct event_device_room *room)
{
	uint64_t used = room->total_bytes - room->free_bytes;

	if (room->free_bytes > room->total_bytes || used < sums->device_used_bytes)
		return;
	sums->device_used_bytes = used;
	sums->device_capacity_bytes = room->total_bytes;
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct passing *passing = context;

	(void)innermost;
	torsh_device_join_event(passing->join, process, &event->event);
	torsh_c10d_event(&passing->c10d, process, &event->event);
	torsh_nccl_source_event(&passing->nccl, process, event, passing->pass->sums.operators);
	torsh_mpi_source_event(&passing->mpi, process, event, passing->pass->sums.operators);
	if (event->event.id == EVENT_TENSOR)
		see_tensor(passing, event);
	else if (event->event.id == EVENT_PYTHON_GC)
		see_gc(passing->pass, &event->event.python_gc);
	else if (event->event.id == EVENT_DEVICE_ROOM)
		see_room(&passing->pass->sums, &event->event.device_room);
}

static void see_launch(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	struct passing *passing = context;

	torsh_device_join_launch(passing->join, process, event, around);
}

static uint64_t own_launch(void *context, const struct recorded_process *process,
			   const struct timeline_event *event, const struct enclosing_spans *around)
{
	struct passing *passing = context;
	uint64_t of_c10d = torsh_c10d_launch(&passing->c10d, around);

	(void)process;
	return of_c10d ? of_c10d : torsh_nccl_source_launch(&passing->nccl, event->thread);
}

static void see_activity(void *context, const struct device_activity *activity)
{
	struct passing *passing = context;
	const struct activity_record *record = &activity->record;

	if (record->device < PASS_DEVICES_MAX)
		passing->pass->sums.activities[record->device]++;
	if (!record->is_timed)
		return;
	if (torsh_nccl_source_made(activity->cause.own))
		torsh_nccl_source_kernel(&passing->nccl, activity->cause.own, record);
	else if (activity->cause.own && record->what == DEVICE_KERNEL)
		torsh_c10d_kernel(&passing->c10d, activity->cause.own - 1, record);
	else
		torsh_busy_add(&passing->pass->kernels, record->begin_ns,
			       record->begin_ns + record->duration_ns);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static int compare_issued(const void *a, const void *b)
{
	const struct rank_collective *x = a, *y = b;

	if (x->issued_ns != y->issued_ns)
		return x->issued_ns < y->issued_ns ? -1 : 1;
	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static void add_busy(struct busy *to, const struct busy *from)
{
	for (size_t i = 0; i < from->n; i++)
		torsh_busy_add(to, from->intervals[i].begin_ns, from->intervals[i].end_ns);
}

static void settle(struct process_pass *pass)
{
	struct rank_collectives *all = &pass->collectives;

	if (all->n)
		qsort(all->items, all->n, sizeof(*all->items), compare_issued);
	torsh_busy_settle(&pass->gc);
	add_busy(&pass->data, &pass->gc);
	torsh_busy_settle(&pass->data);
	add_busy(&pass->compute, &pass->data);
	torsh_busy_settle(&pass->compute);
	torsh_busy_settle(&pass->kernels);
}

void torsh_process_pass(struct process_pass *pass, struct fold *fold, struct call_paths *paths,
			const struct recording *recording, struct recorded_process *process,
			const struct prepass *prepass)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event, .launch = see_launch};
	static const struct device_visitor rows = {.own = own_launch, .activity = see_activity};
	struct passing passing = {.pass = pass, .fold = fold, .paths = paths};
	int rc;

	*pass = (struct process_pass){.steps = &torsh_prepass_of(prepass, process)->steps};
	pass->spent = torsh_need_items(NULL, 0, pass->steps->n, sizeof(*pass->spent));
	pass->tensor_peaks = torsh_need_items(NULL, 0, pass->steps->n, sizeof(*pass->tensor_peaks));
	passing.c10d.all = passing.mpi.all = passing.nccl.all = &pass->collectives;
	torsh_phase_lanes_start(&passing.lanes, pass->steps, pass->spent);
	passing.join = torsh_device_join_create(prepass, &rows, &passing);
	rc = torsh_spans_visit(recording, &process, 1, prepass->unnested, NULL, &visitor, &passing,
			       NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	torsh_device_join_destroy(passing.join);
	torsh_phase_lanes_stop(&passing.lanes);
	torsh_nccl_source_finish(&passing.nccl, passing.c10d.n_over_nccl);
	enter_steps(&passing, UINT64_MAX);
	torsh_c10d_free(&passing.c10d);
	torsh_nccl_source_free(&passing.nccl);
	torsh_mpi_source_free(&passing.mpi);
	settle(pass);
}

void torsh_process_pass_free(struct process_pass *pass)
{
	free(pass->spent);
	free(pass->tensor_peaks);
	torsh_rank_collectives_free(&pass->collectives);
	torsh_busy_free(&pass->gc);
	torsh_busy_free(&pass->data);
	torsh_busy_free(&pass->compute);
	torsh_busy_free(&pass->kernels);
}
