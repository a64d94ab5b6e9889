/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The overview of a recording, read for torsh report and torsh open. */
#ifndef TORSH_COMMAND_REPORT_OVERVIEW_READING_H
#define TORSH_COMMAND_REPORT_OVERVIEW_READING_H

#include "tools/command/reading.h"
#include "tools/report/overview.h"

struct overview_reading {
	struct reading reading;
	struct overview overview;
	/* valid if overview.has_timeline */
	struct prepass prepass;
	struct analysis_request request;
};

/* Read the recording that the options select, and find its leaks: n_leaks of them are named. */
void torsh_overview_read(struct overview_reading *of, struct read_options *options, size_t n_leaks);

/* Collect the sites of the peak, and temporary blocks; n_named of each are named. */
void torsh_overview_read_lists(struct overview_reading *of, struct read_options *options, size_t n);

/* Read the timeline: devices, and findings if requested. */
void torsh_overview_read_timeline(struct overview_reading *of, const struct read_options *options,
				  bool with_findings);

/* After the timeline: find the steps' critical path, and what slows them. */
void torsh_overview_read_path(struct overview_reading *of, const struct critical_steps *chosen);

/* Returns the pre-pass, or NULL if the timeline was not read. */
const struct prepass *torsh_overview_prepass(const struct overview_reading *of);

/* Free all of it, and what the options own. */
void torsh_overview_close(struct overview_reading *of, struct read_options *options);

#endif
