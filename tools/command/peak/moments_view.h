/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What `torsh peak` prints about moments, in its two renderings. */
#ifndef TORSH_COMMAND_PEAK_MOMENTS_VIEW_H
#define TORSH_COMMAND_PEAK_MOMENTS_VIEW_H

#include "tools/command/peak/peak_moments.h"
#include "tools/memory/moments.h"

/* A process with the moments that are shown of it. */
struct process_moments {
	struct memory_moments all;
	const struct memory_moment *at; /* NULL: the process has none that was requested */
	const struct memory_moment *since; /* NULL: nothing is subtracted */
};

struct moments_view {
	const struct read_options *options;
	const struct reading *reading;
	const struct moments_request *request;
	struct process_moments *items; /* of each process of the reading */
	bool is_change, is_window;
	struct process_moments *chosen; /* whose moment is the highest; NULL: no window, or none */
	uint64_t from_ns, to_ns; /* of the window, or of the span of it that has the moment */
	bool has_peak; /* the window has the peak of the shown process: it is exact */
	uint64_t curve_bytes, curve_ns; /* the highest point of its curve there */
	uint64_t bytes, blocks; /* of all shown sites; a change: modulo 2^64 */
	struct allocation_sites held; /* or what grew */
	size_t n_held; /* that are printed */
	struct allocation_sites shrunk; /* by how much; a change only */
	size_t n_shrunk;
	uint64_t shrunk_bytes;
};

/* Print the view on stdout, for people. */
void torsh_moments_text(const struct moments_view *view);

/* Print it on stdout as JSON: tools/schema/peak-moments.json. */
void torsh_moments_json(const struct moments_view *view);

#endif
