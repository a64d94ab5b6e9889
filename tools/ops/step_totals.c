/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/step_totals.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/timeline/device/busy.h"
#include "tools/timeline/device/launch_join.h"

#define STEP_DEVICES_MAX 64u /* per process; more are treated as damage */

/* Sums of a device during the pass. */
struct device_sum {
	uint32_t device;
	uint64_t *launched_ns; /* by step */
	struct busy busy;
};

struct adder {
	const struct steps *steps;
	struct step_total *totals;
	struct device_join *join;
	struct device_sum *devices;
	size_t n_devices, devices_room;
	struct flops_book *book;
	struct phase_lanes phases;
	size_t n_entered; /* steps that began before the last tensor event */
	int64_t held_bytes;
};

static void see_begin(void *context, struct span *span)
{
	struct adder *adder = context;

	torsh_phase_lanes_begin(&adder->phases, span);
	if (span->kind == SPAN_OPERATOR)
		torsh_flops_book_begin(adder->book, span);
}

static void see_end(void *context, struct span *span)
{
	struct adder *adder = context;
	size_t step = torsh_steps_of(adder->steps, span->start_ns, span->thread);
	struct flops own = {0};

	torsh_phase_lanes_end(&adder->phases, span);
	if (span->kind == SPAN_OPERATOR)
		own = torsh_flops_book_end(adder->book, span);
	if (step == STEP_NONE)
		return;
	adder->totals[step].calls += span->kind == SPAN_OPERATOR;
	adder->totals[step].flops += own.counter;
	adder->totals[step].flops_all += own.all;
}

/* Each step begins with the memory that is allocated then. */
static void enter_steps(struct adder *adder, uint64_t at_ns)
{
	for (; adder->n_entered < adder->steps->n &&
	       adder->steps->items[adder->n_entered].start_ns <= at_ns;
	     adder->n_entered++)
		adder->totals[adder->n_entered].peak_bytes =
			adder->held_bytes > 0 ? (uint64_t)adder->held_bytes : 0;
}

/* What came before: a step may begin or end then. */
static void add_counts(struct adder *adder, const struct timeline_event *event)
{
	uint64_t before_ns = event->at_ns - (event->at_ns > 0);
	size_t step = torsh_steps_of(adder->steps, before_ns, event->thread);

	if (step != STEP_NONE)
		torsh_cpu_counts_take(&adder->totals[step].counts, &event->event);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct adder *adder = context;
	const struct event_tensor *tensor = &event->event.tensor;
	size_t step;

	(void)innermost;
	torsh_device_join_event(adder->join, process, &event->event);
	if (torsh_cpu_counts_are_in(&event->event))
		add_counts(adder, event);
	if (event->event.id != EVENT_TENSOR)
		return;
	enter_steps(adder, event->at_ns);
	adder->held_bytes += tensor->is_free ? -(int64_t)tensor->bytes : (int64_t)tensor->bytes;
	step = torsh_steps_of(adder->steps, event->at_ns, event->thread);
	if (step != STEP_NONE && adder->held_bytes > (int64_t)adder->totals[step].peak_bytes)
		adder->totals[step].peak_bytes = (uint64_t)adder->held_bytes;
}

/* ---- devices --------------------------------------------------------------------------------- */

static void see_launch(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	const struct adder *adder = context;

	torsh_device_join_launch(adder->join, process, event, around);
}

/* Linear search: a node has few devices. */
static struct device_sum *find_device(struct adder *adder, uint32_t device)
{
	struct device_sum *sum;

	for (size_t i = 0; i < adder->n_devices; i++) {
		if (adder->devices[i].device == device)
			return &adder->devices[i];
	}
	if (adder->n_devices == STEP_DEVICES_MAX)
		return NULL;
	adder->devices = torsh_array_reserve(adder->devices, adder->n_devices, &adder->devices_room,
					     sizeof(*adder->devices));
	sum = &adder->devices[adder->n_devices++];
	sum->device = device;
	sum->launched_ns = torsh_need_items(NULL, 0, adder->steps->n, sizeof(*sum->launched_ns));
	return sum;
}

static void see_activity(void *context, const struct device_activity *activity)
{
	struct adder *adder = context;
	const struct activity_record *record = &activity->record;
	struct device_sum *sum = find_device(adder, record->device);
	size_t step = torsh_steps_at(adder->steps, torsh_activity_issued_ns(activity));

	if (sum)
		torsh_busy_add(&sum->busy, record->begin_ns,
			       record->begin_ns + record->duration_ns);
	if (step == STEP_NONE)
		return;
	if (sum)
		sum->launched_ns[step] += record->duration_ns;
	adder->totals[step].device_ns += record->duration_ns;
	if (activity->cause.has_phase)
		adder->totals[step].phase_device_ns[activity->cause.phase] += record->duration_ns;
}

static int compare_devices(const void *a, const void *b)
{
	const struct device_sum *x = a, *y = b;

	return (x->device > y->device) - (x->device < y->device);
}

static void take_device(struct step_totals *totals, const struct steps *steps,
			struct device_sum *sum, size_t place)
{
	size_t next = 0;

	totals->devices[place] = sum->device;
	torsh_busy_settle(&sum->busy);
	for (size_t i = 0; i < steps->n; i++) {
		const struct step *step = &steps->items[i];

		totals->of_devices[i * totals->n_devices + place] = (struct step_device){
			.device_ns = sum->launched_ns[i],
			.busy_ns =
				torsh_busy_within(&sum->busy, step->start_ns, step->end_ns, &next),
		};
	}
	torsh_busy_free(&sum->busy);
	free(sum->launched_ns);
}

static void take_devices(struct step_totals *totals, struct adder *adder)
{
	if (adder->n_devices)
		qsort(adder->devices, adder->n_devices, sizeof(*adder->devices), compare_devices);
	totals->n_devices = adder->n_devices;
	totals->devices = torsh_need_items(NULL, 0, adder->n_devices, sizeof(*totals->devices));
	totals->of_devices = torsh_need_items(NULL, 0, adder->n_devices * adder->steps->n,
					      sizeof(*totals->of_devices));
	for (size_t i = 0; i < adder->n_devices; i++)
		take_device(totals, adder->steps, &adder->devices[i], i);
	free(adder->devices);
}

void torsh_step_totals_collect(struct step_totals *totals, const struct recording *recording,
			       struct recorded_process *process, const struct prepass *prepass)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event, .launch = see_launch};
	static const struct device_visitor rows = {.activity = see_activity};
	const struct prepass_process *of = torsh_prepass_of(prepass, process);
	struct adder adder = {.steps = &of->steps,
			      .book = torsh_flops_book_create(recording, prepass)};
	struct phase_step *spent = torsh_need_items(NULL, 0, of->steps.n, sizeof(*spent));
	struct phase_traffic traffic;
	int rc;

	*totals = (struct step_totals){.has_devices = of->work.is_seen};
	totals->items = adder.totals =
		torsh_need_items(NULL, 0, adder.steps->n, sizeof(*adder.totals));
	torsh_phase_lanes_start(&adder.phases, adder.steps, spent);
	adder.phases.whole.watch = torsh_phase_traffic_watch(&traffic, recording);
	adder.join = torsh_device_join_create(prepass, &rows, &adder);
	rc = torsh_spans_visit(recording, &process, 1, prepass->unnested, NULL, &visitor, &adder,
			       NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	torsh_device_join_destroy(adder.join);
	torsh_phase_lanes_stop(&adder.phases);
	torsh_phase_traffic_end(&traffic);
	memcpy(totals->phase_traffic, traffic.sums, sizeof(traffic.sums));
	for (size_t i = 0; i < adder.steps->n; i++)
		adder.totals[i].spent = spent[i];
	free(spent);
	enter_steps(&adder, UINT64_MAX);
	take_devices(totals, &adder);
	torsh_flops_book_destroy(adder.book);
}

void torsh_step_totals_free(struct step_totals *totals)
{
	free(totals->items);
	free(totals->devices);
	free(totals->of_devices);
	*totals = (struct step_totals){0};
}
