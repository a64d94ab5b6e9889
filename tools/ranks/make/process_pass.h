/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One pass over the timeline of a process, for its fold: spans by call path and step, phases of
 * steps, collectives, and when the process computed, loaded data, collected garbage.
 */
#ifndef TORSH_RANKS_MAKE_PROCESS_PASS_H
#define TORSH_RANKS_MAKE_PROCESS_PASS_H

#include "tools/ranks/make/call_paths.h"
#include "tools/ranks/make/rank_collective.h"
#include "tools/timeline/device/busy.h"
#include "tools/timeline/phase_lanes.h"
#include "tools/timeline/prepass/prepass.h"

#define PASS_DEVICES_MAX 64u

struct pass_sums {
	uint64_t activities[PASS_DEVICES_MAX]; /* by the number of their device */
	uint64_t operators, gc_ns, gc_runs, tensor_peak_bytes;
	uint64_t device_used_bytes, device_capacity_bytes; /* of the fullest report; 0: none */
};

/* What a pass found; torsh_process_pass_free frees it. */
struct process_pass {
	const struct steps *steps;
	struct phase_step *spent; /* by step, as the next one */
	uint64_t *tensor_peaks;
	struct rank_collectives collectives; /* in the order of issued_ns */
	struct busy gc, data, compute; /* settled; compute has data and gc, data has gc */
	struct busy kernels; /* of devices, without those of collectives */
	struct pass_sums sums;
	size_t n_samples; /* collectives that the row keeps, about: the caller sets it */
};

/* Make the pass, and add spans to the fold. Ends the program if the recording can't be read. */
void torsh_process_pass(struct process_pass *pass, struct fold *fold, struct call_paths *paths,
			const struct recording *recording, struct recorded_process *process,
			const struct prepass *prepass);

/* Free what it found. */
void torsh_process_pass_free(struct process_pass *pass);

#endif
