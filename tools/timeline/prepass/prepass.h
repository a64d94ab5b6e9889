/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A first pass over the timeline, for readers that then make a second one: which spans do not
 * nest, where steps begin, which data exist.
 */
#ifndef TORSH_TIMELINE_PREPASS_PREPASS_H
#define TORSH_TIMELINE_PREPASS_PREPASS_H

#include "tools/timeline/counts/cpu_counts.h"
#include "tools/timeline/device/device_activity.h"
#include "tools/timeline/device/device_list.h"
#include "tools/timeline/device/device_work.h"
#include "tools/timeline/prepass/data_workers.h"
#include "tools/timeline/prepass/passes.h"
#include "tools/timeline/prepass/process_attributes.h"
#include "tools/timeline/steps.h"

struct windows;

struct prepass_process {
	const struct recorded_process *process;
	uint64_t n_operators, n_ranges, n_modules, n_tensors;
	uint64_t first_ns, last_ns; /* of its events; 0 without events */
	bool has_events;
	struct steps steps;
	struct step_finder *finder; /* this and passes: NULL after they have decided */
	struct pass_finder *passes;
	struct device_work work;
	struct device_list devices;
	struct process_attributes facts;
	struct process_counts counts;
};

struct prepass {
	struct prepass_process *items; /* in the order of the processes given */
	size_t n;
	struct unnested_spans *unnested;
	struct data_workers *data_workers; /* NULL after is_data_worker is set */
	struct span_counts counts;
	bool has_inputs, has_stacks; /* of at least one operator */
	const struct windows *windows; /* the restriction (timeline/window.h); NULL: none */
};

/* Run the pre-pass over these processes. Ends the program if the recording cannot be read. */
void torsh_prepass_make(struct prepass *prepass, const struct recording *recording,
			struct recorded_process *const *processes, size_t n_processes);

/* Free the pre-pass. */
void torsh_prepass_free(struct prepass *prepass);

/* Restrict the pre-pass's steps to the selected ones. Returns the number of remaining steps. */
size_t torsh_prepass_choose(struct prepass *prepass, const struct steps_choice *choice);

/* Report only what lies in these windows, of the same processes; they must outlive the pre-pass. */
void torsh_prepass_restrict(struct prepass *prepass, const struct windows *windows);

/* Returns true if a span is reported, by the selected or recorded steps. */
bool torsh_prepass_has(const struct prepass *prepass, const struct recorded_process *process,
		       uint64_t at_ns);

/* Returns the best rule by which a process has steps: steps of this rule are reported. */
enum step_rule torsh_prepass_step_rule(const struct prepass *prepass);

/* Returns whether a process ran operators. */
bool torsh_prepass_has_operators(const struct prepass *prepass);

/* Returns the results for a process, or NULL. */
const struct prepass_process *torsh_prepass_of(const struct prepass *prepass,
					       const struct recorded_process *process);

#endif
