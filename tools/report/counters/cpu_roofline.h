/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Operators on the CPU beside what a core can do: their FLOPs by the cycles and the misses of the
 * last cache that were counted on the threads that ran them.
 */
#ifndef TORSH_REPORT_COUNTERS_CPU_ROOFLINE_H
#define TORSH_REPORT_COUNTERS_CPU_ROOFLINE_H

#include "tools/ops/operators.h"
#include "tools/report/counters/cpu_counters.h"
#include "tools/report/counters/traffic_report.h"

#define CPU_ROOFLINE_LINE_BYTES 64u /* of a cache: on x86-64, and on most of AArch64 */

/* What holds for all operators of a recording. */
struct cpu_roofline_limits {
	uint64_t peak; /* FLOPs in a cycle of a core, as the caller states them; 0: unknown */
	bool has_flops; /* FLOPs were requested */
	double others_share; /* processor time of threads without operators; NAN: unknown */
	char others_reason
		[CPU_COUNTERS_TEXT_BYTES]; /* why counts lack their work; "": they don't */
	const char *device_reason; /* why a device may have computed any of them, or NULL */
	char counters_text[CPU_COUNTERS_TEXT_BYTES];
	const char *counters_reason; /* as torsh_cpu_counters_why, or NULL */
};

/* NAN: unknown. */
struct cpu_roofline {
	double gflop_per_s, flops_per_cycle, peak_share;
	double llc_bytes, llc_gb_per_s; /* lines that reads fetched into the last cache */
	double flops_per_llc_byte;
	const char *reason; /* of the first that is unknown; of peak_share peak 0 is no reason */
};

/* Find out what holds for all operators. */
void torsh_cpu_roofline_limits(struct cpu_roofline_limits *limits, const struct prepass *prepass,
			       const struct operators *operators, uint64_t peak);

/* Of an operator with what is inside; its counts are known. */
struct cpu_roofline torsh_cpu_roofline_of(const struct operator_total *total,
					  const struct cpu_roofline_limits *limits);

/* "cpu_roofline" of an operator; null without counts. */
void torsh_cpu_roofline_emit(struct json_writer *json, const struct operator_total *total,
			     const struct cpu_roofline_limits *limits);

/* "cpu_roofline" of the recording, beside what the machine's memory moved. */
void torsh_cpu_roofline_emit_limits(struct json_writer *json,
				    const struct cpu_roofline_limits *limits,
				    const struct traffic_report *traffic);

#endif
