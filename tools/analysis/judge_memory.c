/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about devices' memory, and about the recording itself. See tools/analysis/judge.h. */
#include <math.h>

#include "tools/analysis/judge.h"

#define DEVICE_MEMORY "the device's memory"

typedef void memory_rule(struct verdict *verdict, const struct observed_memory *memory, uint64_t device_bytes);

static void judge_memory(struct verdict *verdict, memory_rule *rule)
{
	const struct observed_process *of = verdict->of;

	verdict->share_of = DEVICE_MEMORY;
	if (!of->n_memory)
		torsh_verdict_can(verdict, "no framework's allocator told of memory of a device");
	for (size_t i = 0; i < of->n_memory; i++) {
		const struct event_device *device = torsh_device_list_find(&of->of->devices, of->memory[i].device);

		if (device && device->memory_bytes)
			rule(verdict, &of->memory[i], device->memory_bytes);
		else
			torsh_verdict_can(verdict, "the devices' properties were not recorded");
	}
}

static struct finding *fire(struct verdict *verdict, const struct observed_memory *memory, double share_pct)
{
	struct finding *finding = torsh_verdict_fire(verdict, share_pct);

	finding->has_device = true;
	finding->device = memory->device;
	return finding;
}

static void memory_waste(struct verdict *verdict, const struct observed_memory *memory, uint64_t device_bytes)
{
	double unused = (double)memory->reserved - (double)memory->allocated, unused_pct;
	struct finding *finding;

	if (!torsh_verdict_can(verdict, memory->has_sums ? NULL : "the allocator does not say what it reserves"))
		return;
	unused_pct = torsh_percent(unused, (double)memory->reserved);
	if (!torsh_limit_passed(LIMIT_MEMORY_WASTE_UNUSED, unused_pct))
		return;
	finding = fire(verdict, memory, torsh_percent(unused, (double)device_bytes));
	torsh_finding_limit(finding, LIMIT_MEMORY_WASTE_UNUSED, unused_pct);
	torsh_finding_say(finding, "reserved", "bytes", (double)memory->reserved);
	torsh_finding_say(finding, "allocated", "bytes", (double)memory->allocated);
}

void torsh_judge_memory_waste(struct verdict *verdict)
{
	judge_memory(verdict, memory_waste);
}

static void large_allocation(struct verdict *verdict, const struct observed_memory *memory, uint64_t device_bytes)
{
	double size_pct = torsh_percent((double)memory->largest_bytes, (double)device_bytes);
	struct finding *finding;

	torsh_verdict_can(verdict, NULL);
	if (!torsh_limit_passed(LIMIT_LARGE_ALLOCATION_SIZE, size_pct))
		return;
	finding = fire(verdict, memory, size_pct);
	finding->operator_name = memory->largest_operator;
	torsh_finding_limit(finding, LIMIT_LARGE_ALLOCATION_SIZE, size_pct);
	torsh_finding_say(finding, "tensor", "bytes", (double)memory->largest_bytes);
	torsh_finding_say(finding, "device_memory", "bytes", (double)device_bytes);
}

void torsh_judge_large_allocation(struct verdict *verdict)
{
	judge_memory(verdict, large_allocation);
}

/* ---- the recording ----------------------------------------------------------------------------------------------- */

void torsh_judge_events_missing(struct verdict *verdict)
{
	const struct profile_process *process = verdict->of->process;
	const struct event_device_loss *losses = &verdict->of->losses;
	double events = (double)process->dropped;
	double records = (double)losses->dropped + (double)losses->without_room + (double)losses->invalid;
	struct finding *finding;

	verdict->share_of = "what there was to record";
	torsh_verdict_can(verdict, NULL);
	if (!torsh_limit_passed(LIMIT_EVENTS_MISSING_EVENTS, events + records))
		return;
	finding =
		torsh_verdict_fire(verdict, torsh_percent(events + records, (double)process->produced +
										    (double)losses->records + records));
	torsh_finding_limit(finding, LIMIT_EVENTS_MISSING_EVENTS, events + records);
	torsh_finding_say(finding, "dropped_events", "events", events);
	torsh_finding_say(finding, "device_records", "records", records);
}

void torsh_judge_counters_refused(struct verdict *verdict)
{
	const struct counter_process *counted =
		torsh_counters_process(&verdict->observed->counters, verdict->of->process);

	verdict->share_of = NULL;
	if (!torsh_verdict_can(verdict, counted && counted->n_devices ? NULL : "counters were not asked for"))
		return;
	for (size_t i = 0; i < counted->n_devices; i++) {
		const char *reason = torsh_timeline_label(verdict->of->process, counted->devices[i].mode.reason);
		struct finding *finding;

		if (counted->devices[i].mode.mode != COUNTERS_OFF)
			continue;
		finding = torsh_verdict_fire(verdict, NAN);
		finding->note = reason;
		finding->has_device = counted->devices[i].device != COUNTER_ALL_DEVICES;
		finding->device = finding->has_device ? counted->devices[i].device : 0;
		torsh_finding_limit(finding, LIMIT_COUNTERS_REFUSED_REFUSALS, 1);
	}
}

/* Of all threads, as long as each was there. */
static double count_thread_ns(const struct profile_process *process, uint64_t last_ns)
{
	double ns = 0;

	for (size_t i = 0; i < process->n_threads; i++) {
		const struct profile_thread *thread = &process->threads[i];
		uint64_t end_ns = thread->end_ns ? thread->end_ns : last_ns;

		ns += end_ns > thread->start_ns ? (double)(end_ns - thread->start_ns) : 0;
	}
	return ns;
}

void torsh_judge_profiler_too_heavy(struct verdict *verdict)
{
	const struct observed_process *of = verdict->of;
	const struct profile_process *process = of->process;
	uint64_t last_ns = process->has_end_ns ? process->end_ns : of->of->last_ns;
	double ns = (double)process->waited_ns + (double)of->overhead_ns, thread_ns = count_thread_ns(process, last_ns);
	double share_pct = torsh_percent(ns, thread_ns);
	struct finding *finding;

	verdict->share_of = "the threads' time";
	if (!torsh_verdict_can(verdict, thread_ns > 0 ? NULL : "it is not known how long threads were there") ||
	    !torsh_limit_passed(LIMIT_PROFILER_TOO_HEAVY_TIME, share_pct))
		return;
	finding = torsh_verdict_fire(verdict, share_pct);
	torsh_finding_limit(finding, LIMIT_PROFILER_TOO_HEAVY_TIME, share_pct);
	torsh_finding_say(finding, "waited_ns", "ns", (double)process->waited_ns);
	torsh_finding_say(finding, "cupti_ns", "ns", (double)of->overhead_ns);
}
