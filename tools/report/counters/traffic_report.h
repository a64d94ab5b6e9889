/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the machine's memory controllers moved, as JSON and as sentences: of the machine, all
 * programs included, and why nothing is known.
 */
#ifndef TORSH_REPORT_COUNTERS_TRAFFIC_REPORT_H
#define TORSH_REPORT_COUNTERS_TRAFFIC_REPORT_H

#include "tools/base/json_writer.h"
#include "tools/timeline/counts/memory_traffic.h"

#define TRAFFIC_TEXT_BYTES 512

/* From the begin of the first of the processes to the end of the last one. */
struct traffic_report {
	const struct recorded_memory_traffic *recorded;
	struct memory_traffic whole;
	double highest; /* as torsh_memory_traffic_highest */
	/* Why the above lacks something, and the command that would allow it; "": nothing */
	char reason[TRAFFIC_TEXT_BYTES];
};

/* Make the report; the recording must outlive it. */
void torsh_traffic_report_make(struct traffic_report *report, const struct recording *recording,
			       struct recorded_process *const *processes, size_t n);

/* Returns GB in a second of both directions; NAN: unknown. */
double torsh_traffic_gb_per_s(const struct memory_traffic *traffic);

/* "NAME": {"ns", "read_gb_per_s", "written_gb_per_s"}; null where nothing is known. */
void torsh_traffic_emit(struct json_writer *json, const char *name,
			const struct memory_traffic *traffic);

/* "memory_traffic": the report. */
void torsh_traffic_report_emit(struct json_writer *json, const struct traffic_report *report);

/* Put "1.23 GB/s read, 0.5 GB/s written"; false: nothing is known. */
bool torsh_traffic_text(const struct memory_traffic *traffic, char text[TRAFFIC_TEXT_BYTES]);

/* Put the report as a sentence without its full stop; false: nothing is known. */
bool torsh_traffic_report_text(const struct traffic_report *report, char text[TRAFFIC_TEXT_BYTES]);

#endif
