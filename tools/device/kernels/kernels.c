/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/die.h"
#include "tools/timeline/call_window.h"

struct process_state {
	struct kernel_process *seen;
	const struct steps *steps;
	struct call_window labels; /* the operators around calls of CUDA, for waits */
	struct key_index rows; /* keyed by numbers of this process: index of rows */
};

struct collector {
	struct kernels *kernels;
	struct process_state *states;
	struct attributor *attributor;
	struct device_join *join;
	struct hash_map known; /* rows by their text, over all processes */
};

static const char *name_of(const struct recorded_process *process,
			   const struct activity_record *record)
{
	const char *name;

	if (record->what == DEVICE_COPY)
		return torsh_copy_name(record->kind);
	if (record->what == DEVICE_MEMSET)
		return "memset";
	if (record->what == DEVICE_GRAPH)
		return "CUDA graph";
	name = torsh_timeline_label(process, record->name);
	return name && *name ? name : "?";
}

/* Returns a new row, or another process's row with the same text. */
static size_t find_row(struct collector *collector, const struct recorded_process *process,
		       const struct activity_record *record, const struct attribution *by)
{
	struct kernels *kernels = collector->kernels;
	const char *name = name_of(process, record);
	char *key =
		torsh_need_text("%d\n%d\n%d\n%s\n%s", (int)record->what, (int)by->reason,
				(int)by->method, name, by->operator_name ? by->operator_name : "");
	size_t row = torsh_hash_map_put_text(&collector->known, key, kernels->n)->value;

	free(key);
	if (row < kernels->n)
		return row;
	kernels->rows = torsh_array_reserve(kernels->rows, kernels->n, &kernels->n_room,
					    sizeof(*kernels->rows));
	kernels->rows[kernels->n] = (struct kernel_row){
		.what = record->what,
		.name = torsh_need(strdup(name)),
		.operator_name = by->operator_name ? torsh_need(strdup(by->operator_name)) : NULL,
		.reason = by->reason,
		.method = by->method,
		.family = by->family,
		.min_ns = UINT64_MAX,
	};
	return kernels->n++;
}

/* Returns the row of this name and call site, and creates it if it is new. */
static struct kernel_row *row_of(struct collector *collector, struct process_state *state,
				 const struct activity_record *record, const struct attribution *by)
{
	/* Labels are below 2^30: an agent has at most 2^18 of them. */
	uint64_t name = record->what == DEVICE_KERNEL ? record->name : record->kind;
	uint64_t key = ((name << 30 | by->site) << 4 | (uint64_t)by->reason << 2 |
			(uint64_t)record->what) +
		       1;
	struct key_slot *slot = torsh_key_index_find(&state->rows, key);
	size_t number = slot->number;

	if (!slot->key) {
		number = find_row(collector, state->seen->process, record, by);
		torsh_key_index_fill(&state->rows, slot, key, (uint32_t)number);
	}
	return &collector->kernels->rows[number];
}

/*
 * An activity belongs to the step of its launch, whenever it ran; without a recorded launch, to
 * the step in which it began.
 */
static bool is_of_a_step(const struct process_state *state, const struct device_activity *activity)
{
	return torsh_steps_have(state->steps, activity->is_captured
						      ? activity->record.begin_ns
						      : torsh_activity_issued_ns(activity));
}

static void add(struct collector *collector, struct process_state *state,
		const struct activity_record *record, const struct attribution *by)
{
	struct kernel_row *row = row_of(collector, state, record, by);

	torsh_kernel_lines_add(&state->seen->lines, record, by->stack, by->is_captured);
	row->calls++;
	row->bytes += record->bytes;
	if (!record->is_timed)
		return;
	row->timed++;
	row->total_ns += record->duration_ns;
	row->min_ns = record->duration_ns < row->min_ns ? record->duration_ns : row->min_ns;
	row->max_ns = record->duration_ns > row->max_ns ? record->duration_ns : row->max_ns;
	collector->kernels->total_ns += record->duration_ns;
	if (!by->reason)
		collector->kernels->attributed_ns += record->duration_ns;
}

static struct process_state *find_state(struct collector *collector,
					const struct recorded_process *process)
{
	for (size_t i = 0; i < collector->kernels->n_processes; i++) {
		if (collector->states[i].seen->process == process)
			return &collector->states[i];
	}
	return NULL;
}

/* A wait is reported after the call that waited, with the call's correlation id. */
static void see_call(struct collector *collector, struct process_state *state,
		     const struct event *event, const struct span *innermost)
{
	uint32_t operator_label = 0;

	if (event->id == EVENT_DEVICE_WAIT &&
	    !torsh_call_window_find(&state->labels, event->device_wait.correlation,
				    &operator_label))
		operator_label = 0;
	torsh_device_calls_add(&collector->kernels->calls, state->seen->process, event,
			       operator_label);
	if (event->id == EVENT_DEVICE_CALL || event->id == EVENT_LAUNCH)
		torsh_call_window_add(&state->labels,
				      event->id == EVENT_LAUNCH ? event->launch.correlation
								: event->device_call.correlation,
				      innermost ? innermost->name : 0);
}

/* ---- devices --------------------------------------------------------------------------------- */

static uint64_t place_of(void *context, const struct recorded_process *process,
			 const struct timeline_event *event, const struct enclosing_spans *around)
{
	const struct collector *collector = context;

	return torsh_attributor_place(collector->attributor, process, event, around->in_operator,
				      0);
}

static void see_activity(void *context, const struct device_activity *activity)
{
	struct collector *collector = context;
	struct process_state *state = find_state(collector, activity->process);
	struct attribution by;

	if (!state || !is_of_a_step(state, activity))
		return;
	torsh_attribute(collector->attributor, activity, &by);
	add(collector, state, &activity->record, &by);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void see_begin(void *context, struct span *span)
{
	struct collector *collector = context;

	torsh_attributor_begin(collector->attributor, span);
}

static void see_end(void *context, struct span *span)
{
	struct collector *collector = context;

	torsh_attributor_end(collector->attributor, span);
}

static void see_launch(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	struct collector *collector = context;
	struct process_state *state = find_state(collector, process);

	if (!state)
		return;
	see_call(collector, state, &event->event, around->in_operator);
	torsh_device_join_launch(collector->join, process, event, around);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct collector *collector = context;
	struct process_state *state;

	if (event->event.id < EVENT_LAUNCH || !(state = find_state(collector, process)))
		return;
	torsh_counters_see(&collector->kernels->counters, process, &event->event);
	see_call(collector, state, &event->event, innermost);
	switch (event->event.id) {
	case EVENT_DEVICE_MODE:
		state->seen->mode = event->event.device_mode;
		state->seen->has_mode = true;
		return;
	case EVENT_DEVICE_LOSS:
		state->seen->losses = event->event.device_loss;
		state->seen->has_losses = true;
		return;
	case EVENT_PAIR_TIMING:
		state->seen->pairs = event->event.pair_timing;
		state->seen->has_pairs = true;
		return;
	default:
		torsh_device_join_event(collector->join, process, &event->event);
	}
}

static void end_state(struct process_state *state)
{
	torsh_call_window_destroy(&state->labels);
	torsh_key_index_destroy(&state->rows);
}

static int compare_rows(const void *a, const void *b)
{
	const struct kernel_row *x = a, *y = b;
	int rc = (x->what > y->what) - (x->what < y->what);

	if (rc == 0)
		rc = strcmp(x->name, y->name);
	if (rc == 0)
		rc = (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
	if (rc == 0)
		rc = (x->reason > y->reason) - (x->reason < y->reason);
	return rc ? rc
		  : strcmp(x->operator_name ? x->operator_name : "",
			   y->operator_name ? y->operator_name : "");
}

void torsh_kernels_collect(struct kernels *kernels, const struct recording *recording,
			   struct recorded_process *const *processes, size_t n_processes,
			   const struct prepass *prepass)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event, .launch = see_launch};
	static const struct device_visitor devices = {
		.wants_untimed = true, .own = place_of, .activity = see_activity};
	struct collector collector = {.kernels = kernels};
	int rc;

	*kernels = (struct kernels){.n_processes = n_processes};
	torsh_counters_create(&kernels->counters);
	torsh_device_calls_create(&kernels->calls);
	kernels->processes = torsh_need_items(NULL, 0, n_processes, sizeof(*kernels->processes));
	collector.states = torsh_need_items(NULL, 0, n_processes, sizeof(*collector.states));
	for (size_t i = 0; i < n_processes; i++) {
		kernels->processes[i].process = processes[i];
		torsh_kernel_lines_create(&kernels->processes[i].lines);
		collector.states[i].seen = &kernels->processes[i];
		collector.states[i].steps = &torsh_prepass_of(prepass, processes[i])->steps;
		torsh_call_window_create(&collector.states[i].labels);
		torsh_key_index_create(&collector.states[i].rows);
	}
	collector.attributor = torsh_attributor_create(processes, n_processes, prepass);
	collector.join = torsh_device_join_create(prepass, &devices, &collector);
	rc = torsh_spans_visit(recording, processes, n_processes, prepass->unnested, NULL, &visitor,
			       &collector, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	torsh_device_join_destroy(collector.join);
	for (size_t i = 0; i < n_processes; i++)
		end_state(&collector.states[i]);
	torsh_attributor_destroy(collector.attributor);
	free(collector.states);
	torsh_hash_map_free(&collector.known);
	torsh_device_calls_finish(&kernels->calls);
	if (kernels->n)
		qsort(kernels->rows, kernels->n, sizeof(*kernels->rows), compare_rows);
}

double torsh_kernels_share(const struct kernels *kernels)
{
	return kernels->total_ns ? (double)kernels->attributed_ns / (double)kernels->total_ns : 0;
}

void torsh_kernels_free(struct kernels *kernels)
{
	for (size_t i = 0; i < kernels->n; i++) {
		free(kernels->rows[i].name);
		free(kernels->rows[i].operator_name);
	}
	for (size_t i = 0; i < kernels->n_processes; i++)
		torsh_kernel_lines_destroy(&kernels->processes[i].lines);
	torsh_counters_destroy(&kernels->counters);
	torsh_device_calls_free(&kernels->calls);
	free(kernels->rows);
	free(kernels->processes);
}
