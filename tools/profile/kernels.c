/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/kernels.h. */
#include "tools/profile/kernels.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "tools/die.h"
#include "tools/profile/launch_window.h"

const char *const torsh_kernel_reasons[N_KERNEL_REASONS] = {
#define REASON(NAME, text) text,
	KERNEL_REASONS
#undef REASON
};

/* Beyond that the older half has waited for its launch long enough. */
#define EARLY_MAX 65536u

struct process_state {
	struct kernel_process *seen;
	struct launch_window launches; /* the operator's label */
	struct graph_nodes nodes; /* the operator's label */
	struct key_index rows; /* by numbers of this process: index of rows */
	/* What was told before its launch was: by another thread, while the call still ran. The oldest first. */
	struct device_span *early;
	size_t n_early, early_room;
};

struct known_row {
	char *text;
	size_t row;
};

struct collector {
	struct kernels *kernels;
	struct process_state *states;
	void *known; /* tree of struct known_row */
};

static int compare_texts(const void *a, const void *b)
{
	return strcmp(((const struct known_row *)a)->text, ((const struct known_row *)b)->text);
}

static void free_known(void *known)
{
	free(((struct known_row *)known)->text);
	free(known);
}

static const char *name_of(const struct profile_process *process, const struct device_span *span)
{
	const char *name;

	if (span->what == DEVICE_COPY)
		return torsh_copy_name(span->kind);
	if (span->what == DEVICE_MEMSET)
		return "memset";
	if (span->what == DEVICE_GRAPH)
		return "CUDA graph";
	name = torsh_timeline_label(process, span->name);
	return name && *name ? name : "?";
}

/* Where something belongs. */
struct cause {
	enum kernel_reason reason;
	uint32_t operator_label;
	bool is_captured;
};

/* A new row, or another process's of the same text. */
static size_t find_row(struct collector *collector, const struct profile_process *process,
		       const struct device_span *span, const struct cause *cause)
{
	struct kernels *kernels = collector->kernels;
	const char *name = name_of(process, span), *operator_name = torsh_timeline_label(process, cause->operator_label);
	struct known_row *key = torsh_need(malloc(sizeof(*key))), **found;

	operator_name = operator_name ? operator_name : "?";
	*key = (struct known_row){
		.text = torsh_need_text("%d\n%d\n%d\n%s\n%s", (int)span->what, (int)cause->reason,
					(int)cause->is_captured, name, cause->reason ? "" : operator_name),
		.row = kernels->n,
	};
	found = torsh_need(tsearch(key, &collector->known, compare_texts));
	if (*found != key) {
		free_known(key);
		return (*found)->row;
	}
	kernels->rows = torsh_need_room(kernels->rows, kernels->n, &kernels->n_room, sizeof(*kernels->rows));
	kernels->rows[kernels->n] = (struct kernel_row){
		.what = span->what,
		.name = torsh_need(strdup(name)),
		.operator_name = cause->reason ? NULL : torsh_need(strdup(operator_name)),
		.is_captured = cause->is_captured,
		.reason = cause->reason,
		.min_ns = UINT64_MAX,
	};
	return kernels->n++;
}

/* Labels are below 2^29: an agent has 2^18 of them at most. */
static uint64_t key_of(const struct device_span *span, const struct cause *cause)
{
	uint64_t name = span->what == DEVICE_KERNEL ? span->name : span->kind;

	return ((name << 30 | cause->operator_label) << 5 | (uint64_t)cause->is_captured << 4 |
		(uint64_t)cause->reason << 2 | (uint64_t)span->what) +
	       1;
}

static void add(struct collector *collector, struct process_state *state, const struct device_span *span,
		const struct cause *cause)
{
	uint64_t key = key_of(span, cause);
	struct key_slot *slot = torsh_key_index_find(&state->rows, key);
	struct kernel_row *row;
	size_t number = slot->number;

	if (!slot->key) {
		number = find_row(collector, state->seen->process, span, cause);
		torsh_key_index_fill(&state->rows, slot, key, (uint32_t)number);
	}
	row = &collector->kernels->rows[number];
	row->calls++;
	row->bytes += span->bytes;
	if (!span->is_timed)
		return;
	row->timed++;
	row->total_ns += span->duration_ns;
	row->min_ns = span->duration_ns < row->min_ns ? span->duration_ns : row->min_ns;
	row->max_ns = span->duration_ns > row->max_ns ? span->duration_ns : row->max_ns;
	collector->kernels->total_ns += span->duration_ns;
	if (!cause->reason)
		collector->kernels->attributed_ns += span->duration_ns;
}

/* Returns false where its launch is not there, or not yet. */
static bool find_cause(const struct process_state *state, const struct device_span *span, struct cause *cause)
{
	uint32_t label = torsh_graph_nodes_find(&state->nodes, span->node);

	*cause = (struct cause){.operator_label = label, .is_captured = true};
	if (label)
		return true;
	*cause = (struct cause){.reason = KERNEL_NO_LAUNCH};
	if (!span->correlation)
		return true;
	if (!torsh_launch_window_find(&state->launches, span->correlation, &cause->operator_label))
		return false;
	cause->reason = cause->operator_label ? KERNEL_NONE : KERNEL_NO_OPERATOR;
	return true;
}

static bool attribute(struct collector *collector, struct process_state *state, const struct device_span *span)
{
	struct cause cause;

	if (!find_cause(state, span, &cause))
		return false;
	add(collector, state, span, &cause);
	return true;
}

/* Give the early ones that have their launch now to it; of the others all but the latest n_kept wait no longer. */
static void settle_early(struct collector *collector, struct process_state *state, size_t n_kept)
{
	static const struct cause not_seen = {.reason = KERNEL_NOT_SEEN};
	size_t n = 0, n_given_up;

	for (size_t i = 0; i < state->n_early; i++) {
		if (!attribute(collector, state, &state->early[i]))
			state->early[n++] = state->early[i];
	}
	n_given_up = n > n_kept ? n - n_kept : 0;
	for (size_t i = 0; i < n_given_up; i++)
		add(collector, state, &state->early[i], &not_seen);
	memmove(state->early, state->early + n_given_up, (n - n_given_up) * sizeof(*state->early));
	state->n_early = n - n_given_up;
}

static void keep_early(struct collector *collector, struct process_state *state, const struct device_span *span)
{
	if (state->n_early == EARLY_MAX)
		settle_early(collector, state, EARLY_MAX / 2);
	state->early = torsh_need_room(state->early, state->n_early, &state->early_room, sizeof(*state->early));
	state->early[state->n_early++] = *span;
}

static struct process_state *find_state(struct collector *collector, const struct profile_process *process)
{
	for (size_t i = 0; i < collector->kernels->n_processes; i++) {
		if (collector->states[i].seen->process == process)
			return &collector->states[i];
	}
	return NULL;
}

/* A wait is told after the call that waited, whose number it has. */
static void see_call(struct collector *collector, const struct process_state *state, const struct event *event)
{
	uint32_t operator_label = 0;

	if (event->id == EVENT_DEVICE_WAIT &&
	    !torsh_launch_window_find(&state->launches, event->device_wait.correlation, &operator_label))
		operator_label = 0;
	torsh_device_calls_add(&collector->kernels->calls, state->seen->process, event, operator_label);
}

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	struct collector *collector = context;
	struct process_state *state;
	struct device_span span;

	if (event->event.id < EVENT_LAUNCH || !(state = find_state(collector, process)))
		return;
	torsh_counters_see(&collector->kernels->counters, process, &event->event);
	see_call(collector, state, &event->event);
	switch (event->event.id) {
	case EVENT_DEVICE_CALL:
		torsh_launch_window_add(&state->launches, event->event.device_call.correlation,
					innermost ? innermost->name : 0);
		return;
	case EVENT_LAUNCH:
		torsh_launch_window_add(&state->launches, event->event.launch.correlation, innermost ? innermost->name : 0);
		return;
	case EVENT_GRAPH_NODE:
		torsh_graph_nodes_see(&state->nodes, &event->event.graph_node, innermost ? innermost->name : 0);
		return;
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
		if ((torsh_device_span(&event->event, &span) || torsh_device_untimed(&event->event, &span)) &&
		    !attribute(collector, state, &span))
			keep_early(collector, state, &span);
	}
}

static void end_state(struct collector *collector, struct process_state *state)
{
	if (state->n_early)
		settle_early(collector, state, 0);
	free(state->early);
	torsh_launch_window_destroy(&state->launches);
	torsh_graph_nodes_destroy(&state->nodes);
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
	return rc ? rc : strcmp(x->operator_name ? x->operator_name : "", y->operator_name ? y->operator_name : "");
}

void torsh_kernels_collect(struct kernels *kernels, const struct profile *profile,
			   struct profile_process *const *processes, size_t n_processes, const struct survey *survey)
{
	static const struct calls_visitor visitor = {.event = see_event};
	struct collector collector = {.kernels = kernels};
	int rc;

	*kernels = (struct kernels){.n_processes = n_processes};
	torsh_counters_create(&kernels->counters);
	torsh_device_calls_create(&kernels->calls);
	kernels->processes = torsh_need_items(NULL, 0, n_processes, sizeof(*kernels->processes));
	collector.states = torsh_need_items(NULL, 0, n_processes, sizeof(*collector.states));
	for (size_t i = 0; i < n_processes; i++) {
		kernels->processes[i].process = processes[i];
		collector.states[i].seen = &kernels->processes[i];
		torsh_launch_window_create(&collector.states[i].launches);
		torsh_graph_nodes_create(&collector.states[i].nodes);
		torsh_key_index_create(&collector.states[i].rows);
	}
	rc = torsh_calls_walk(profile, processes, n_processes, survey->crossings, NULL, &visitor, &collector, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", profile->path, strerror(-rc));
	for (size_t i = 0; i < n_processes; i++)
		end_state(&collector, &collector.states[i]);
	free(collector.states);
	tdestroy(collector.known, free_known);
	torsh_device_calls_finish(&kernels->calls);
	if (kernels->n)
		qsort(kernels->rows, kernels->n, sizeof(*kernels->rows), compare_rows);
}

void torsh_kernels_free(struct kernels *kernels)
{
	for (size_t i = 0; i < kernels->n; i++) {
		free(kernels->rows[i].name);
		free(kernels->rows[i].operator_name);
	}
	torsh_counters_destroy(&kernels->counters);
	torsh_device_calls_free(&kernels->calls);
	free(kernels->rows);
	free(kernels->processes);
}
