/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/kernels.h. */
#include "tools/profile/kernels.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "tools/die.h"

struct process_state {
	struct kernel_process *seen;
	const struct steps *steps;
	struct key_index rows; /* by numbers of this process: index of rows */
};

struct known_row {
	char *text;
	size_t row;
};

struct collector {
	struct kernels *kernels;
	struct process_state *states;
	struct attribution *attribution;
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

static void add(struct collector *collector, struct process_state *state, const struct device_span *span,
		enum kernel_reason reason, uint32_t operator_label)
{
	uint64_t key = key_of(span, reason, operator_label);
	struct key_slot *slot = torsh_key_index_find(&state->rows, key);
	struct kernel_row *row;
	size_t number = slot->number;

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

static struct process_state *find_state(struct collector *collector, const struct profile_process *process)
{
	for (size_t i = 0; i < collector->kernels->n_processes; i++) {
		if (collector->states[i].seen->process == process)
			return &collector->states[i];
	}
	return NULL;
}

static void see_row(void *context, const struct device_row *row)
{
	struct collector *collector = context;
	struct process_state *state = find_state(collector, row->process);

	if (torsh_steps_have(state->steps, torsh_device_row_asked_ns(row)))
		add(collector, state, &row->span, row->reason, row->reason ? 0 : row->launch.operator_name);
}

static void see_launch(void *context, const struct profile_process *process, const struct timeline_event *event,
		       const struct calls_around *around)
{
	struct collector *collector = context;

	torsh_attribution_launch(collector->attribution, process, event, around);
}

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	struct collector *collector = context;
	struct kernel_process *seen;

	(void)innermost;
	if (event->event.id < EVENT_LAUNCH)
		return;
	seen = find_state(collector, process)->seen;
	if (event->event.id == EVENT_DEVICE_MODE) {
		seen->mode = event->event.device_mode;
		seen->has_mode = true;
	} else if (event->event.id == EVENT_DEVICE_LOSS) {
		seen->losses = event->event.device_loss;
		seen->has_losses = true;
	} else {
		torsh_attribution_event(collector->attribution, process, &event->event);
	}
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
	static const struct calls_visitor visitor = {.event = see_event, .launch = see_launch};
	static const struct attribution_visitor rows = {.row = see_row};
	struct collector collector = {.kernels = kernels,
				      .attribution = torsh_attribution_create(survey, &rows, &collector)};
	int rc;

	*kernels = (struct kernels){.n_processes = n_processes};
	kernels->processes = torsh_need_items(NULL, 0, n_processes, sizeof(*kernels->processes));
	collector.states = torsh_need_items(NULL, 0, n_processes, sizeof(*collector.states));
	for (size_t i = 0; i < n_processes; i++) {
		kernels->processes[i].process = processes[i];
		collector.states[i].seen = &kernels->processes[i];
		collector.states[i].steps = &torsh_survey_of(survey, processes[i])->steps;
		torsh_key_index_create(&collector.states[i].rows);
	}
	rc = torsh_calls_walk(profile, processes, n_processes, survey->crossings, NULL, &visitor, &collector, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", profile->path, strerror(-rc));
	torsh_attribution_destroy(collector.attribution);
	for (size_t i = 0; i < n_processes; i++)
		torsh_key_index_destroy(&collector.states[i].rows);
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
