/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Counters of the CPU as JSON and as sentences: what they are, and why some are missing. */
#ifndef TORSH_REPORT_COUNTERS_CPU_COUNTERS_H
#define TORSH_REPORT_COUNTERS_CPU_COUNTERS_H

#include "tools/base/json_writer.h"
#include "tools/timeline/prepass/prepass.h"

#define CPU_COUNTERS_TEXT_BYTES 512

/*
 * Why counters are missing, and the command that would allow them. Returns text, or NULL where all
 * were counted.
 */
const char *torsh_cpu_counters_reason(const struct process_counts *counts,
				      char text[CPU_COUNTERS_TEXT_BYTES]);

/* The same for a recording: of the first process with counters. */
const char *torsh_cpu_counters_why(const struct prepass *prepass,
				   char text[CPU_COUNTERS_TEXT_BYTES]);

/*
 * How memory is accessed, as a sentence with its numbers. Returns text, or NULL where the counters
 * are not enough.
 */
const char *torsh_cpu_counters_access(const struct cpu_counts *counts,
				      char text[CPU_COUNTERS_TEXT_BYTES]);

/* "NAME": {"cycles", "instructions", ...}; null without counts. */
void torsh_cpu_counters_emit(struct json_writer *json, const char *name,
			     const struct cpu_counts *counts);

/* "counters_reason": that of the recording. */
void torsh_cpu_counters_emit_reason(struct json_writer *json, const struct prepass *prepass);

/* "counter_threads": [{"pid", "tid", "name", "counters"}], of the whole run. */
void torsh_cpu_counters_emit_threads(struct json_writer *json, const struct prepass *prepass);

#endif
