/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/counters/traffic_report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/store/recording_format.h"

#define WHAT "memory controllers were not counted"
#define PERMISSION "kernel.perf_event_paranoid of 0 or less, or CAP_PERFMON"
#define PARANOID_MACHINE 0 /* the highest level at which a user may count the whole machine */

/* ---- reasons --------------------------------------------------------------------------------- */

static void put_refusal(char *text, const struct recorded_memory_traffic *recorded)
{
	int error = (int)recorded->error;

	if (error != EACCES && error != EPERM)
		snprintf(text, TRAFFIC_TEXT_BYTES, WHAT ": perf_event_open failed for %s: %s",
			 recorded->source, strerror(error));
	else if (recorded->has_paranoid && recorded->paranoid > PARANOID_MACHINE)
		snprintf(text, TRAFFIC_TEXT_BYTES,
			 WHAT ": they count for the whole machine, which is not permitted while "
			      "kernel.perf_event_paranoid is %" PRId32
			      ": sudo sysctl kernel.perf_event_paranoid=%d",
			 recorded->paranoid, PARANOID_MACHINE);
	else
		snprintf(text, TRAFFIC_TEXT_BYTES,
			 WHAT ": perf_event_open is refused by a filter or a security module, as "
			      "in containers: docker run --cap-add PERFMON "
			      "--security-opt seccomp=unconfined");
}

/* Why there are no readings at all. */
static void put_reason(char *text, const struct recorded_memory_traffic *recorded)
{
	switch (recorded->problem) {
	case TRAFFIC_COUNTED:
		snprintf(text, TRAFFIC_TEXT_BYTES,
			 WHAT " often enough: the run was over before two readings, or some of "
			      "the %" PRIu32 " counters of %s never had their turn",
			 recorded->n_counters, recorded->source);
		return;
	case TRAFFIC_NO_SOURCE:
		snprintf(text, TRAFFIC_TEXT_BYTES,
			 WHAT ": the kernel shows none in /sys/bus/event_source/devices, as in "
			      "virtual machines; on a machine of its own: sudo modprobe -a "
			      "intel_uncore amd_uncore; and they need " PERMISSION);
		return;
	case TRAFFIC_UNNAMED:
		snprintf(text, TRAFFIC_TEXT_BYTES,
			 WHAT ": the kernel shows %s, but not which of its events count bytes: a "
			      "newer kernel may; and they need " PERMISSION,
			 recorded->source);
		return;
	case TRAFFIC_REFUSED:
		put_refusal(text, recorded);
		return;
	default:
		snprintf(text, TRAFFIC_TEXT_BYTES, WHAT ": counters of %s can't be read: %s",
			 recorded->source ? recorded->source : "them",
			 strerror((int)recorded->error));
	}
}

static void find_reason(struct traffic_report *report)
{
	const struct recorded_memory_traffic *recorded = report->recorded;

	if (!recorded->is_known)
		snprintf(report->reason, sizeof(report->reason),
			 WHAT ": TORSH_PROFILER_ACTIVITIES does not name perf, or an older "
			      "version recorded this; they need " PERMISSION);
	else if (recorded->n < 2)
		put_reason(report->reason, recorded);
	else if (recorded->problem != TRAFFIC_COUNTED)
		snprintf(report->reason, sizeof(report->reason),
			 "memory controllers were counted until %.3g s only: then counters of %s "
			 "could not be read: %s",
			 (double)recorded->readings[recorded->n - 1].at_ns / 1e9, recorded->source,
			 strerror((int)recorded->error));
	else if (!report->whole.ns)
		snprintf(report->reason, sizeof(report->reason),
			 WHAT " often enough: no two readings lie in the run");
}

void torsh_traffic_report_make(struct traffic_report *report, const struct recording *recording,
			       struct recorded_process *const *processes, size_t n)
{
	uint64_t from_ns = UINT64_MAX, to_ns = 0;

	*report = (struct traffic_report){.recorded = &recording->memory_traffic};
	for (size_t i = 0; i < n; i++) {
		uint64_t end_ns = processes[i]->has_end_ns ? processes[i]->end_ns : UINT64_MAX;

		from_ns = processes[i]->start_ns < from_ns ? processes[i]->start_ns : from_ns;
		to_ns = end_ns > to_ns ? end_ns : to_ns;
	}
	if (report->recorded->n && from_ns <= to_ns) {
		report->whole = torsh_memory_traffic_in(report->recorded, from_ns, to_ns);
		report->highest = torsh_memory_traffic_highest(report->recorded, from_ns, to_ns);
	}
	find_reason(report);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

double torsh_traffic_gb_per_s(const struct memory_traffic *traffic)
{
	double bytes = (double)traffic->read_bytes + (double)traffic->written_bytes;

	return traffic->ns ? bytes / (double)traffic->ns : NAN;
}

static void put_rate(struct json_writer *json, const char *name, double bytes, uint64_t ns)
{
	if (ns)
		torsh_json_put_rounded(json, name, bytes / (double)ns, 6);
	else
		torsh_json_put_null(json, name);
}

static void put_rates(struct json_writer *json, const struct memory_traffic *traffic)
{
	torsh_json_put_u64(json, "ns", traffic->ns);
	put_rate(json, "read_gb_per_s", (double)traffic->read_bytes, traffic->ns);
	put_rate(json, "written_gb_per_s", (double)traffic->written_bytes, traffic->ns);
}

void torsh_traffic_emit(struct json_writer *json, const char *name,
			const struct memory_traffic *traffic)
{
	if (!traffic->ns) {
		torsh_json_put_null(json, name);
		return;
	}
	torsh_json_begin_object(json, name);
	put_rates(json, traffic);
	torsh_json_end_object(json);
}

void torsh_traffic_report_emit(struct json_writer *json, const struct traffic_report *report)
{
	const struct recorded_memory_traffic *recorded = report->recorded;
	const struct memory_traffic *whole = &report->whole;

	torsh_json_begin_object(json, "memory_traffic");
	torsh_json_put_text(json, "of", "machine");
	torsh_json_put_text(json, "source", recorded->source);
	torsh_json_put_u64(json, "counters", recorded->n_counters);
	put_rates(json, whole);
	torsh_json_put_known(json, "read_bytes", whole->ns, whole->read_bytes);
	torsh_json_put_known(json, "written_bytes", whole->ns, whole->written_bytes);
	if (report->highest > 0)
		torsh_json_put_rounded(json, "highest_gb_per_s", report->highest, 6);
	else
		torsh_json_put_null(json, "highest_gb_per_s");
	if (recorded->n)
		torsh_json_put_rounded(json, "counted_share", recorded->counted_share, 6);
	else
		torsh_json_put_null(json, "counted_share");
	torsh_json_put_text(json, "reason", *report->reason ? report->reason : NULL);
	torsh_json_end_object(json);
}

/* ---- text ------------------------------------------------------------------------------------ */

bool torsh_traffic_text(const struct memory_traffic *traffic, char text[TRAFFIC_TEXT_BYTES])
{
	*text = '\0';
	if (!traffic->ns)
		return false;
	snprintf(text, TRAFFIC_TEXT_BYTES, "%.3g GB/s read, %.3g GB/s written",
		 (double)traffic->read_bytes / (double)traffic->ns,
		 (double)traffic->written_bytes / (double)traffic->ns);
	return true;
}

bool torsh_traffic_report_text(const struct traffic_report *report, char text[TRAFFIC_TEXT_BYTES])
{
	size_t n;

	if (!torsh_traffic_text(&report->whole, text))
		return false;
	n = strlen(text);
	snprintf(text + n, TRAFFIC_TEXT_BYTES - n,
		 ", at most %.3g GB/s: of the whole machine, all programs", report->highest);
	return true;
}
