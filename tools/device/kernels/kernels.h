/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/device contains device activity (kernels/) and device memory (memory/). Read this file
 * first.
 *
 * Device activity by name and by the operator that launched it: the innermost operator that was
 * open on the launching thread when the call returned that CUPTI correlates with it; otherwise the
 * best other evidence (tools/device/kernels/attribution.h).
 */
#ifndef TORSH_DEVICE_KERNELS_KERNELS_H
#define TORSH_DEVICE_KERNELS_KERNELS_H

#include "tools/device/kernels/attribution.h"
#include "tools/device/kernels/counters.h"
#include "tools/device/kernels/device_calls.h"
#include "tools/device/kernels/kernel_lines.h"

/* All activities of one name that one operator launched. */
struct kernel_row {
	enum device_what what;
	char *name; /* a kernel's recorded name, a copy's kind, "memset", "CUDA graph" */
	char *operator_name; /* NULL: none, for this reason */
	enum kernel_reason reason;
	enum attribution_method method;
	const char *family; /* the family implied by its name if there is no operator, or NULL */
	uint64_t calls, bytes;
	uint64_t timed, total_ns, min_ns, max_ns; /* timed: how many calls the times are of */
};

/* How a process's devices were recorded, and what is missing. */
struct kernel_process {
	const struct recorded_process *process;
	bool has_mode, has_losses, has_pairs;
	struct event_device_mode mode;
	struct event_device_loss losses;
	struct event_pair_timing pairs;
	struct kernel_lines lines;
};

struct kernels {
	struct kernel_row *rows; /* by kind, then by name, then by time, the longest first */
	size_t n, n_room;
	struct device_calls calls;
	struct kernel_process *processes;
	size_t n_processes;
	uint64_t total_ns, attributed_ns; /* of kernels, copies and memsets; with an operator */
	struct counters counters;
};

/*
 * Collect what was launched in the pre-pass's steps. Ends the program if the recording cannot be
 * read.
 */
void torsh_kernels_collect(struct kernels *kernels, const struct recording *recording,
			   struct recorded_process *const *processes, size_t n_processes,
			   const struct prepass *prepass);

/* Free the rows. */
void torsh_kernels_free(struct kernels *kernels);

/*
 * Returns the fraction of the time that is attributed to operators, 0 to 1; 0 if there is no time.
 */
double torsh_kernels_share(const struct kernels *kernels);

#endif
