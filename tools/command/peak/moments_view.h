/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The data of `torsh peak` at moments, and its two renderings. */
#ifndef TORSH_COMMAND_PEAK_MOMENTS_VIEW_H
#define TORSH_COMMAND_PEAK_MOMENTS_VIEW_H

#include "tools/command/peak/peak_moments.h"
#include "tools/memory/moments.h"
#include "tools/report/device_report.h"

struct moments_view;

/* A process with its shown moments. */
struct process_moments {
	struct memory_moments all;
	const struct memory_moment *at; /* NULL: the process has no such moment */
	const struct memory_moment *since; /* NULL: nothing is subtracted */
	struct window_sum highest; /* in all of the window's spans */
	bool has_inexact_span; /* of the window */
	const struct device_process *devices; /* NULL: the joint peak was not requested */
};

/* Returns the request for the moment that a process is shown at; its joint peak is a time. */
struct moment_request torsh_moments_request_of(const struct moments_view *view,
					       const struct process_moments *of);

/* Returns true if the moment that is shown is the process's joint peak itself. */
bool torsh_moments_is_joint(const struct process_moments *of);

struct moments_view {
	const struct read_options *options;
	const struct reading *reading;
	const struct moments_request *request;
	struct process_moments *items; /* parallel to the reading's processes */
	bool is_change, is_window;
	bool is_joint; /* the joint peak was requested */
	struct device_reading devices; /* if is_joint */
	struct process_moments *
		/* The process with the highest moment in the window; NULL: no window, or none. */
		chosen;
	uint64_t from_ns, to_ns; /* of the window, or of its span that contains the moment */
	bool has_peak; /* the window contains the shown process's peak: the moment is exact */
	uint64_t curve_bytes, curve_ns; /* the maximum of the process's curve there */
	uint64_t bytes, blocks; /* of all shown sites; for a change modulo 2^64 */
	struct allocation_sites held; /* or what grew */
	size_t n_held; /* number printed */
	struct allocation_sites undecided; /* what perhaps has the requested age */
	uint64_t undecided_bytes, undecided_blocks;
	size_t n_undecided;
	struct allocation_sites shrunk; /* by how much; for a change only */
	size_t n_shrunk;
	uint64_t shrunk_bytes;
};

/* Print the view on stdout as text. */
void torsh_moments_text(const struct moments_view *view);

/* Print it on stdout as JSON: tools/schema/peak-moments.json. */
void torsh_moments_json(const struct moments_view *view);

#endif
