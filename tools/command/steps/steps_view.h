/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The data of `torsh steps`, and its two renderings. */
#ifndef TORSH_COMMAND_STEPS_STEPS_VIEW_H
#define TORSH_COMMAND_STEPS_STEPS_VIEW_H

#include "tools/command/reading.h"
#include "tools/ops/step_totals.h"

struct steps_view {
	const struct reading *reading;
	struct prepass prepass;
	enum step_rule rule;
	struct step_totals *totals; /* by process; without items if it isn't shown */
	bool has_devices; /* the devices of a shown process were recorded */
	size_t n_steps; /* number of shown steps */
	double certainty; /* the lowest of the shown processes; 0 without steps */
};

/* A step that is shown. */
struct shown_step {
	const struct prepass_process *of;
	const struct step *step;
	const struct step_total *total;
	const struct step_totals *totals; /* of the process */
	const struct step_device *devices; /* totals->n_devices of them */
};

/*
 * Call print for the first n_limit steps, in the order of processes and of time. Returns the
 * number of further ones.
 */
size_t torsh_steps_each(const struct steps_view *view, size_t n_limit, void *context,
			void (*print)(void *context, const struct steps_view *view,
				      const struct shown_step *shown));

/* Sum what the machine's memory moved while a shown process was in each phase; N_PHASES: other. */
void torsh_steps_phase_traffic(const struct steps_view *view,
			       struct memory_traffic sums[N_PHASES + 1]);

/* Returns the step's duration in ns. */
uint64_t torsh_shown_step_duration(const struct shown_step *shown);

/* Returns the share of the step's time in which the device, an index, was busy. */
double torsh_shown_step_busy(const struct shown_step *shown, size_t device);

/* Print the steps on stdout as text: the distribution, then a table of at most n_limit. */
void torsh_steps_text(const struct steps_view *view, size_t n_limit);

/* Print the distribution of the durations of all steps, which are in their order. */
void torsh_steps_distribution(const struct steps_view *view, const struct shown_step *steps);

/* Print a table of n steps: all in their order, else the slowest. Sorts the steps. */
void torsh_steps_table(const struct steps_view *view, struct shown_step *steps, size_t n);

/* Print the steps on stdout as JSON: tools/schema/steps.json. */
void torsh_steps_json(const struct steps_view *view, size_t n_limit);

#endif
