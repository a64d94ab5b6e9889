/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/kernels.h. */
#include "tools/profile/kernels.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "tools/die.h"

const char *const torsh_kernel_reasons[N_KERNEL_REASONS] = {
#define REASON(NAME, text) text,
	KERNEL_REASONS
#undef REASON
};

/* In place of an operator: of a launch in a step that doesn't count. */
#define OF_NO_STEP UINT32_MAX

/* A launch that was seen, by its correlation; the operator is a label, 0: none was open. */
struct process_state {
	struct kernel_process *seen;
	const struct steps *steps;
	struct key_index launches; /* by correlation: the operator's label, or OF_NO_STEP */
	struct key_index rows; /* by numbers of this process: index of rows */
	/* What was told before its launch was: by another thread, while the call still ran. */
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
	name = torsh_timeline_label(process, span->name);
	return name && *name ? name : "?";
}

/* A new row, or another process's of the same text. */
static size_t find_row(struct collector *collector, const struct profile_process *process,
		       const struct device_span *span, enum kernel_reason reason, uint32_t operator_label)
{
	struct kernels *kernels = collector->kernels;
	const char *name = name_of(process, span), *operator_name = torsh_timeline_label(process, operator_label);
	struct known_row *key = torsh_need(malloc(sizeof(*key))), **found;

	operator_name = operator_name ? operator_name : "?";
	*key = (struct known_row){
		.text = torsh_need_text("%d\n%d\n%s\n%s", (int)span->what, (int)reason, name,
					reason ? "" : operator_name),
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
		.operator_name = reason ? NULL : torsh_need(strdup(operator_name)),
		.reason = reason,
		.min_ns = UINT64_MAX,
	};
	return kernels->n++;
}

/* Labels are below 2^30: an agent has 2^18 of them at most. */
static uint64_t key_of(const struct device_span *span, enum kernel_reason reason, uint32_t operator_label)
{
	uint64_t name = span->what == DEVICE_KERNEL ? span->name : span->kind;

	return ((name << 30 | operator_label) << 4 | (uint64_t)reason << 2 | (uint64_t)span->what) + 1;
}

/* What was launched in a step is of it, whenever it ran; what of no launch that was seen, of that in which it began. */
static bool is_of_a_step(const struct process_state *state, const struct device_span *span, enum kernel_reason reason,
			 uint32_t operator_label)
{
	if (reason == KERNEL_NO_LAUNCH || reason == KERNEL_NOT_SEEN)
		return torsh_steps_have(state->steps, span->begin_ns);
	return operator_label != OF_NO_STEP;
}

static void add(struct collector *collector, struct process_state *state, const struct device_span *span,
		enum kernel_reason reason, uint32_t operator_label)
{
	uint64_t key = key_of(span, reason, operator_label);
	struct key_slot *slot = torsh_key_index_find(&state->rows, key);
	struct kernel_row *row;
	size_t number = slot->number;

	if (!is_of_a_step(state, span, reason, operator_label))
		return;
	if (!slot->key) {
		number = find_row(collector, state->seen->process, span, reason, operator_label);
		torsh_key_index_fill(&state->rows, slot, key, (uint32_t)number);
	}
	row = &collector->kernels->rows[number];
	row->calls++;
	row->bytes += span->bytes;
	row->total_ns += span->duration_ns;
	row->min_ns = span->duration_ns < row->min_ns ? span->duration_ns : row->min_ns;
	row->max_ns = span->duration_ns > row->max_ns ? span->duration_ns : row->max_ns;
	collector->kernels->total_ns += span->duration_ns;
	if (!reason)
		collector->kernels->attributed_ns += span->duration_ns;
}

/* Returns false where its launch is not there, or not yet. */
static bool attribute(struct collector *collector, struct process_state *state, const struct device_span *span)
{
	const struct key_slot *slot;

	if (!span->correlation) {
		add(collector, state, span, KERNEL_NO_LAUNCH, 0);
		return true;
	}
	slot = torsh_key_index_find(&state->launches, span->correlation);
	if (!slot->key)
		return false;
	add(collector, state, span, slot->number ? KERNEL_NONE : KERNEL_NO_OPERATOR, slot->number);
	return true;
}

static void keep_early(struct process_state *state, const struct device_span *span)
{
	state->early = torsh_need_room(state->early, state->n_early, &state->early_room, sizeof(*state->early));
	state->early[state->n_early++] = *span;
}

static void see_launch(struct process_state *state, const struct event_launch *launch, const struct call *innermost)
{
	uint32_t operator_label = innermost ? innermost->name : 0;
	struct key_slot *slot;

	if (!launch->correlation)
		return;
	slot = torsh_key_index_find(&state->launches, launch->correlation);
	if (!slot->key)
		torsh_key_index_fill(&state->launches, slot, launch->correlation,
				     torsh_steps_have(state->steps, launch->begin) ? operator_label : OF_NO_STEP);
}

static struct process_state *find_state(struct collector *collector, const struct profile_process *process)
{
	for (size_t i = 0; i < collector->kernels->n_processes; i++) {
		if (collector->states[i].seen->process == process)
			return &collector->states[i];
	}
	return NULL;
}

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	struct collector *collector = context;
	struct process_state *state;
	struct device_span span;

	if (event->event.id < EVENT_LAUNCH || !(state = find_state(collector, process)))
		return;
	switch (event->event.id) {
	case EVENT_LAUNCH:
		see_launch(state, &event->event.launch, innermost);
		return;
	case EVENT_DEVICE_MODE:
		state->seen->mode = event->event.device_mode;
		state->seen->has_mode = true;
		return;
	case EVENT_DEVICE_LOSS:
		state->seen->losses = event->event.device_loss;
		state->seen->has_losses = true;
		return;
	default:
		if (torsh_device_span(&event->event, &span) && !attribute(collector, state, &span))
			keep_early(state, &span);
	}
}

static void end_state(struct collector *collector, struct process_state *state)
{
	for (size_t i = 0; i < state->n_early; i++) {
		if (!attribute(collector, state, &state->early[i]))
			add(collector, state, &state->early[i], KERNEL_NOT_SEEN, 0);
	}
	free(state->early);
	torsh_key_index_destroy(&state->launches);
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
	kernels->processes = torsh_need_items(NULL, 0, n_processes, sizeof(*kernels->processes));
	collector.states = torsh_need_items(NULL, 0, n_processes, sizeof(*collector.states));
	for (size_t i = 0; i < n_processes; i++) {
		kernels->processes[i].process = processes[i];
		collector.states[i].seen = &kernels->processes[i];
		collector.states[i].steps = &torsh_survey_of(survey, processes[i])->steps;
		torsh_key_index_create(&collector.states[i].launches);
		torsh_key_index_create(&collector.states[i].rows);
	}
	rc = torsh_calls_walk(profile, processes, n_processes, survey->crossings, NULL, &visitor, &collector, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", profile->path, strerror(-rc));
	for (size_t i = 0; i < n_processes; i++)
		end_state(&collector, &collector.states[i]);
	free(collector.states);
	tdestroy(collector.known, free_known);
	if (kernels->n)
		qsort(kernels->rows, kernels->n, sizeof(*kernels->rows), compare_rows);
}

void torsh_kernels_free(struct kernels *kernels)
{
	for (size_t i = 0; i < kernels->n; i++) {
		free(kernels->rows[i].name);
		free(kernels->rows[i].operator_name);
	}
	free(kernels->rows);
	free(kernels->processes);
}
