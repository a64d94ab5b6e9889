/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/counters/cpu_counters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NOT_REQUESTED "counters were not requested: TORSH_PROFILER_ACTIVITIES does not name perf"
#define PARANOID_HARDWARE 2 /* the highest level at which a user may count itself */
#define PARANOID_KERNEL 1 /* and what happens in the kernel */

#define HARDWARE_MASK ((UINT32_C(1) << N_CPU_HARDWARE_COUNTERS) - 1)

/* ---- reasons --------------------------------------------------------------------------------- */

/* Write why perf_event_open answered that. most: the level of paranoid that allows it. */
static void put_refusal(char *text, const char *what, uint32_t error,
			const struct event_cpu_counter_mode *mode, int32_t most)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		snprintf(
			text, CPU_COUNTERS_TEXT_BYTES,
			"%s: the kernel has no performance monitoring unit here, as in most virtual "
			"machines; the host has to give it one: qemu -cpu host,pmu=on",
			what);
		return;
	case EACCES:
	case EPERM:
		if (mode->paranoid > most)
			snprintf(text, CPU_COUNTERS_TEXT_BYTES,
				 "%s: not permitted while kernel.perf_event_paranoid is %" PRId32
				 ": sudo sysctl kernel.perf_event_paranoid=%" PRId32,
				 what, mode->paranoid, most);
		else
			snprintf(
				text, CPU_COUNTERS_TEXT_BYTES,
				"%s: perf_event_open is refused by a filter or a security module, as in "
				"containers: docker run --cap-add PERFMON --security-opt seccomp=unconfined",
				what);
		return;
	case ENOSYS:
		snprintf(
			text, CPU_COUNTERS_TEXT_BYTES,
			"%s: there is no perf_event_open here: a filter hides it, or the kernel was "
			"built without CONFIG_PERF_EVENTS: docker run --security-opt seccomp=unconfined",
			what);
		return;
	case EMFILE:
	case EINVAL:
		snprintf(text, CPU_COUNTERS_TEXT_BYTES,
			 "%s: no descriptors are left for them above the program's: ulimit -n 4096",
			 what);
		return;
	default:
		snprintf(text, CPU_COUNTERS_TEXT_BYTES, "%s: perf_event_open failed: %s", what,
			 strerror((int)error));
	}
}

const char *torsh_cpu_counters_reason(const struct process_counts *counts,
				      char text[CPU_COUNTERS_TEXT_BYTES])
{
	const struct event_cpu_counter_mode *mode = &counts->mode;
	char what[CPU_COUNTERS_TEXT_BYTES / 2];
	size_t n = 0;

	if (!counts->is_known)
		return NOT_REQUESTED;
	if (!(mode->has & HARDWARE_MASK)) {
		put_refusal(text, "no counters of the processor", mode->error, mode,
			    PARANOID_HARDWARE);
		return text;
	}
	if ((mode->has & HARDWARE_MASK) != HARDWARE_MASK) {
		n += (size_t)snprintf(what, sizeof(what), "this processor does not count");
		for (int i = 0; i < N_CPU_HARDWARE_COUNTERS; i++)
			if (!(mode->has >> i & 1))
				n += (size_t)snprintf(what + n, sizeof(what) - n, " %s",
						      torsh_cpu_counter_names[i]);
		snprintf(text, CPU_COUNTERS_TEXT_BYTES, "%s: %s", what, strerror((int)mode->error));
		return text;
	}
	if (mode->has >> CPU_COUNTER_MIGRATIONS & 1)
		return NULL;
	put_refusal(text, "no migrations", mode->migrations_error, mode, PARANOID_KERNEL);
	return text;
}

const char *torsh_cpu_counters_why(const struct prepass *prepass,
				   char text[CPU_COUNTERS_TEXT_BYTES])
{
	for (size_t i = 0; i < prepass->n; i++)
		if (prepass->items[i].counts.is_known)
			return torsh_cpu_counters_reason(&prepass->items[i].counts, text);
	return NOT_REQUESTED;
}

const char *torsh_cpu_counters_access(const struct cpu_counts *counts,
				      char text[CPU_COUNTERS_TEXT_BYTES])
{
	static const char *const texts[N_ACCESS_PATTERNS] = {
		[ACCESS_RESIDENT] = "what it reads stays in the first cache",
		[ACCESS_CACHED] = "what it reads stays in the processor's caches",
		[ACCESS_STREAMING] = "it reads memory in order, or from huge pages",
		[ACCESS_RANDOM] = "it reads memory all over",
		[ACCESS_MIXED] = "it reads memory, partly in order",
	};
	enum access_pattern pattern = torsh_cpu_counts_pattern(counts);
	double l1d = 0, llc = 0, dtlb = 0;
	bool has_dtlb;

	if (pattern == ACCESS_UNKNOWN)
		return NULL;
	torsh_cpu_counts_ratio(counts, CPU_COUNTER_L1D_MISSES, CPU_COUNTER_INSTRUCTIONS, 1000,
			       &l1d);
	torsh_cpu_counts_ratio(counts, CPU_COUNTER_LLC_MISSES, CPU_COUNTER_INSTRUCTIONS, 1000,
			       &llc);
	has_dtlb = torsh_cpu_counts_ratio(counts, CPU_COUNTER_DTLB_MISSES, CPU_COUNTER_INSTRUCTIONS,
					  1000, &dtlb);
	snprintf(text, CPU_COUNTERS_TEXT_BYTES,
		 has_dtlb ? "%s: %s: %.3g misses of the first cache, %.3g of the last and %.3g of "
			    "the TLB in 1,000 instructions"
			  : "%s: %s: %.3g misses of the first cache and %.3g of the last in 1,000 "
			    "instructions",
		 torsh_access_pattern_names[pattern], texts[pattern], l1d, llc, dtlb);
	return text;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_ratio(struct json_writer *json, const char *name, const struct cpu_counts *counts,
		      enum cpu_counter counter, enum cpu_counter of, double scale)
{
	double value;

	if (torsh_cpu_counts_ratio(counts, counter, of, scale, &value))
		torsh_json_put_rounded(json, name, value, 6);
	else
		torsh_json_put_null(json, name);
}

static void put_misses(struct json_writer *json, const char *name, const struct cpu_counts *counts,
		       enum cpu_counter counter)
{
	put_ratio(json, name, counts, counter, CPU_COUNTER_INSTRUCTIONS, 1000);
}

void torsh_cpu_counters_emit(struct json_writer *json, const char *name,
			     const struct cpu_counts *counts)
{
	char text[CPU_COUNTERS_TEXT_BYTES];
	double value, least = 1;

	if (!counts->n) {
		torsh_json_put_null(json, name);
		return;
	}
	torsh_json_begin_object(json, name);
	for (int i = 0; i < N_CPU_COUNTERS; i++) {
		bool is_known = torsh_cpu_counts_value(counts, (enum cpu_counter)i, &value);
		double share = torsh_cpu_counts_share(counts, (enum cpu_counter)i);

		torsh_json_put_known(json, torsh_cpu_counter_names[i], is_known,
				     is_known ? (uint64_t)(value + 0.5) : 0);
		least = share < least ? share : least;
	}
	torsh_json_put_rounded(json, "counted_share", least, 6);
	put_ratio(json, "ipc", counts, CPU_COUNTER_INSTRUCTIONS, CPU_COUNTER_CYCLES, 1);
	put_misses(json, "branch_misses_per_1000", counts, CPU_COUNTER_BRANCH_MISSES);
	put_misses(json, "l1d_misses_per_1000", counts, CPU_COUNTER_L1D_MISSES);
	put_misses(json, "llc_misses_per_1000", counts, CPU_COUNTER_LLC_MISSES);
	put_misses(json, "dtlb_misses_per_1000", counts, CPU_COUNTER_DTLB_MISSES);
	torsh_json_put_text(json, "access",
			    torsh_access_pattern_names[torsh_cpu_counts_pattern(counts)]);
	torsh_json_put_text(json, "access_text", torsh_cpu_counters_access(counts, text));
	torsh_json_end_object(json);
}

void torsh_cpu_counters_emit_reason(struct json_writer *json, const struct prepass *prepass)
{
	char text[CPU_COUNTERS_TEXT_BYTES];

	torsh_json_put_text(json, "counters_reason", torsh_cpu_counters_why(prepass, text));
}

static void emit_thread(struct json_writer *json, const struct recorded_process *process,
			size_t thread, const struct cpu_counts *counts)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", process->pid);
	torsh_json_put_u64(json, "tid", process->threads[thread].tid);
	torsh_json_put_text(json, "name", process->threads[thread].name);
	torsh_cpu_counters_emit(json, "counters", counts);
	torsh_json_end_object(json);
}

void torsh_cpu_counters_emit_threads(struct json_writer *json, const struct prepass *prepass)
{
	torsh_json_begin_lines(json, "counter_threads");
	for (size_t i = 0; i < prepass->n; i++) {
		const struct sparse_array *threads = &prepass->items[i].counts.threads;
		const struct cpu_counts *counts;

		for (size_t k = 0; (counts = torsh_sparse_array_next(threads, &k)); k++)
			if (counts->n)
				emit_thread(json, prepass->items[i].process, k, counts);
	}
	torsh_json_end_array(json);
}
