/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `torsh peak` at other moments than the peak: at a given one, at the highest one of a window, or
 * the change between two. Reports the nearest moments that the recording has, and their distance.
 */
#ifndef TORSH_COMMAND_PEAK_PEAK_MOMENTS_H
#define TORSH_COMMAND_PEAK_PEAK_MOMENTS_H

#include "tools/command/reading.h"

/* A moment that was requested. */
struct moment_request {
	enum { MOMENT_NOT_REQUESTED, MOMENT_OF_TIME, MOMENT_OF_STEP, MOMENT_OF_NAME } kind;
	uint64_t number; /* ns since the recording began, or number of the step */
	const char *name; /* "start", "peak" or "end", else a mark's name */
};

struct moments_request {
	struct moment_request at, since, to, from;
	struct window_request window; /* steps and a region only */
	bool has_age;
	struct age age; /* of what is shown, at least */
};

/* Returns true if a moment or a window was requested. */
bool torsh_moments_are_requested(const struct moments_request *request);

/* Parse TIME, start, peak, end or the name of a mark. */
void torsh_moment_request_parse(struct moment_request *request, const char *text);

/* Print the report; ends the program if no process has such a moment. */
void torsh_peak_moments(const struct read_options *options, const struct reading *reading,
			const struct moments_request *request);

#endif
