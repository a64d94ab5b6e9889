/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/counters/cpu_roofline.h"

#include <math.h>
#include <stdio.h>

#define OTHERS_MOST 0.01 /* of the processor time: rooflines may be off by as much */

#define NO_FLOPS "FLOPs were not requested: TORSH_PROFILER_WITH_FLOPS=0"
#define NO_FORMULA "its floating point operations are unknown: there is no formula"
#define FLOPS_AROUND \
	"it has no floating point operations, or they count with the operator that calls it"
#define ON_DEVICE "a device computed for it"
#define MAYBE_ON_DEVICE                                                                           \
	"some tensors are on a device, and what devices computed was not recorded: name cuda in " \
	"TORSH_PROFILER_ACTIVITIES"
#define NO_TIME "no processor time was counted in it"
#define NO_CYCLES "no cycles were counted in it"
#define NO_MISSES "its misses of the last cache were not counted"
#define NO_PEAK                                                                                    \
	"the instructions that the processor has are not in the recording: state what a core can " \
	"do in a cycle with --cpu-peak, by the flags in /proc/cpuinfo of its machine"

/* ---- limits ---------------------------------------------------------------------------------- */

#define ONE_THREAD "record with OMP_NUM_THREADS=1, MKL_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1"

static void see_others(struct cpu_roofline_limits *limits, const struct prepass *prepass)
{
	struct counts_elsewhere sum = {0};

	for (size_t i = 0; i < prepass->n; i++) {
		const struct prepass_process *of = &prepass->items[i];
		struct counts_elsewhere elsewhere;

		if (!of->n_operators || !of->counts.is_known)
			continue;
		elsewhere = torsh_process_counts_elsewhere(&of->counts, of->process);
		sum.n_uncounted += elsewhere.n_uncounted;
		sum.ns += elsewhere.ns;
		sum.all_ns += elsewhere.all_ns;
	}
	if (sum.n_uncounted) {
		snprintf(limits->others_reason, sizeof(limits->others_reason),
			 "operators may use other threads: %zu were not counted, as they did not "
			 "end: " ONE_THREAD,
			 sum.n_uncounted);
		return;
	}
	if (sum.all_ns <= 0)
		return;
	limits->others_share = sum.ns / sum.all_ns;
	if (limits->others_share > OTHERS_MOST)
		snprintf(limits->others_reason, sizeof(limits->others_reason),
			 "operators may use other threads: those without operators took %.3g %% of "
			 "the processor time: " ONE_THREAD,
			 100 * limits->others_share);
}

void torsh_cpu_roofline_limits(struct cpu_roofline_limits *limits, const struct prepass *prepass,
			       const struct operators *operators, uint64_t peak)
{
	*limits = (struct cpu_roofline_limits){
		.peak = peak, .has_flops = operators->has_flops, .others_share = NAN};
	if (operators->has_elsewhere && !operators->has_devices)
		limits->device_reason = MAYBE_ON_DEVICE;
	limits->counters_reason = torsh_cpu_counters_why(prepass, limits->counters_text);
	see_others(limits, prepass);
}

/* ---- an operator ----------------------------------------------------------------------------- */

static const char *why_no_flops(const struct operator_total *total,
				const struct cpu_roofline_limits *limits)
{
	if (!limits->has_flops)
		return NO_FLOPS;
	if (!total->has_flops)
		return NO_FORMULA;
	if (!total->flops_all)
		return FLOPS_AROUND;
	return total->device_ns ? ON_DEVICE : limits->device_reason;
}

static double known(const struct cpu_counts *counts, enum cpu_counter counter)
{
	double value;

	return torsh_cpu_counts_value(counts, counter, &value) ? value : NAN;
}

/* NAN where something is unknown, or of is 0. */
static double per(double value, double of)
{
	return of > 0 ? value / of : NAN;
}

/* Why what needs no FLOPs is unknown, of the first that is; or NULL. */
static const char *why_uncounted(const struct cpu_roofline_limits *limits, double ns, double cycles,
				 double misses)
{
	if (!(ns > 0))
		return NO_TIME;
	if (!(cycles > 0))
		return limits->counters_reason ? limits->counters_reason : NO_CYCLES;
	if (isnan(misses))
		return limits->counters_reason ? limits->counters_reason : NO_MISSES;
	return NULL;
}

struct cpu_roofline torsh_cpu_roofline_of(const struct operator_total *total,
					  const struct cpu_roofline_limits *limits)
{
	const struct cpu_counts *counts = &total->counts;
	const char *no_flops = why_no_flops(total, limits);
	double flops = no_flops ? NAN : (double)total->flops_all;
	double ns = known(counts, CPU_COUNTER_TASK_CLOCK);
	double cycles = known(counts, CPU_COUNTER_CYCLES);
	double misses = known(counts, CPU_COUNTER_LLC_MISSES);
	struct cpu_roofline roofline = {NAN, NAN, NAN, NAN, NAN, NAN, NULL};

	if (*limits->others_reason) {
		roofline.reason = limits->others_reason;
		return roofline;
	}
	roofline.gflop_per_s = per(flops, ns);
	roofline.flops_per_cycle = per(flops, cycles);
	roofline.peak_share = per(roofline.flops_per_cycle, (double)limits->peak);
	roofline.llc_bytes = misses * CPU_ROOFLINE_LINE_BYTES;
	roofline.llc_gb_per_s = per(roofline.llc_bytes, ns);
	roofline.flops_per_llc_byte = per(flops, roofline.llc_bytes);
	roofline.reason = no_flops ? no_flops : why_uncounted(limits, ns, cycles, misses);
	return roofline;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put(struct json_writer *json, const char *name, double value)
{
	if (isnan(value))
		torsh_json_put_null(json, name);
	else
		torsh_json_put_rounded(json, name, value, 6);
}

void torsh_cpu_roofline_emit(struct json_writer *json, const struct operator_total *total,
			     const struct cpu_roofline_limits *limits)
{
	struct cpu_roofline roofline;

	if (!total->counts.n) {
		torsh_json_put_null(json, "cpu_roofline");
		return;
	}
	roofline = torsh_cpu_roofline_of(total, limits);
	torsh_json_begin_object(json, "cpu_roofline");
	put(json, "gflop_per_s", roofline.gflop_per_s);
	put(json, "flops_per_cycle", roofline.flops_per_cycle);
	put(json, "peak_share", roofline.peak_share);
	torsh_json_put_known(json, "llc_miss_bytes", !isnan(roofline.llc_bytes),
			     isnan(roofline.llc_bytes) ? 0 : (uint64_t)(roofline.llc_bytes + 0.5));
	put(json, "llc_miss_gb_per_s", roofline.llc_gb_per_s);
	put(json, "flops_per_llc_miss_byte", roofline.flops_per_llc_byte);
	torsh_json_put_text(json, "reason", roofline.reason);
	torsh_json_end_object(json);
}

void torsh_cpu_roofline_emit_limits(struct json_writer *json,
				    const struct cpu_roofline_limits *limits,
				    const struct traffic_report *traffic)
{
	torsh_json_begin_object(json, "cpu_roofline");
	torsh_json_put_known(json, "peak_flops_per_cycle", limits->peak, limits->peak);
	torsh_json_put_text(json, "peak_reason", limits->peak ? NULL : NO_PEAK);
	torsh_json_put_u64(json, "line_bytes", CPU_ROOFLINE_LINE_BYTES);
	put(json, "other_threads_share", limits->others_share);
	torsh_json_put_text(json, "other_threads_reason",
			    *limits->others_reason ? limits->others_reason : NULL);
	put(json, "memory_gb_per_s", torsh_traffic_gb_per_s(&traffic->whole));
	put(json, "memory_highest_gb_per_s", traffic->highest > 0 ? traffic->highest : NAN);
	torsh_json_put_text(json, "memory_reason", *traffic->reason ? traffic->reason : NULL);
	torsh_json_end_object(json);
}
