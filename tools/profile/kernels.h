/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What devices did by name, and the operator that launched it: the innermost one that was open on the launching thread
 * when the call returned which CUPTI names as the cause.
 */
#ifndef TORSH_PROFILE_KERNELS_H
#define TORSH_PROFILE_KERNELS_H

#include "tools/profile/device.h"
#include "tools/profile/survey.h"

/* REASON(NAME, why something has no operator) */
#define KERNEL_REASONS                                                \
	REASON(NONE, "")                                              \
	REASON(NO_LAUNCH, "CUPTI did not say which call launched it") \
	REASON(NOT_SEEN, "the call that launched it was not seen")    \
	REASON(NO_OPERATOR, "it was launched outside of every operator that was recorded")

enum kernel_reason {
#define REASON(NAME, text) KERNEL_##NAME,
	KERNEL_REASONS
#undef REASON
		N_KERNEL_REASONS
};

extern const char *const torsh_kernel_reasons[N_KERNEL_REASONS];

/* All of one name that one operator launched. */
struct kernel_row {
	enum device_what what;
	char *name; /* a kernel's as it was recorded, a copy's kind, "memset" */
	char *operator_name; /* NULL: none, for this reason */
	enum kernel_reason reason;
	uint64_t calls, bytes, total_ns, min_ns, max_ns;
};

/* How one process was seen, and what is missing of it. */
struct kernel_process {
	const struct profile_process *process;
	bool has_mode, has_losses;
	struct event_device_mode mode;
	struct event_device_loss losses;
};

struct kernels {
	struct kernel_row *rows; /* by what, then by name, then by time, the longest first */
	size_t n, n_room;
	struct kernel_process *processes;
	size_t n_processes;
	uint64_t total_ns, attributed_ns; /* of kernels, copies and memsets; with an operator */
};

/* What was launched in the survey's steps. Dies where the recording can't be read. */
void torsh_kernels_collect(struct kernels *kernels, const struct profile *profile,
			   struct profile_process *const *processes, size_t n_processes, const struct survey *survey);
void torsh_kernels_free(struct kernels *kernels);

#endif
