/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about the recording itself. */
#include <math.h>

#include "tools/analysis/rules.h"

void torsh_rule_evaluate_events_missing(struct evaluation *evaluation)
{
	const struct recorded_process *process = evaluation->of->process;
	const struct event_device_loss *losses = &evaluation->of->losses;
	double events = (double)process->dropped;
	double records =
		(double)losses->dropped + (double)losses->without_room + (double)losses->invalid;
	struct finding *finding;

	evaluation->share_of = "what there was to record";
	torsh_rule_can_evaluate(evaluation, NULL);
	if (!torsh_limit_passed(LIMIT_EVENTS_MISSING_EVENTS, events + records))
		return;
	finding = torsh_rule_fire(
		evaluation,
		torsh_percent(events + records,
			      (double)process->produced + (double)losses->records + records));
	torsh_finding_limit(finding, LIMIT_EVENTS_MISSING_EVENTS, events + records);
	torsh_finding_add(finding, "dropped_events", "events", events);
	torsh_finding_add(finding, "device_records", "records", records);
}

void torsh_rule_evaluate_counters_refused(struct evaluation *evaluation)
{
	const struct counter_process *counted =
		torsh_counters_process(&evaluation->metrics->counters, evaluation->of->process);

	evaluation->share_of = NULL;
	torsh_rule_can_evaluate(
		evaluation, counted && counted->n_devices ? NULL : "counters were not requested");
	for (size_t i = 0; counted && i < counted->n_devices; i++) {
		const char *reason = torsh_timeline_label(evaluation->of->process,
							  counted->devices[i].mode.reason);
		struct finding *finding;

		if (counted->devices[i].mode.mode != COUNTERS_OFF)
			continue;
		finding = torsh_rule_fire(evaluation, NAN);
		finding->note = reason;
		finding->has_device = counted->devices[i].device != COUNTER_ALL_DEVICES;
		finding->device = finding->has_device ? counted->devices[i].device : 0;
		torsh_finding_limit(finding, LIMIT_COUNTERS_REFUSED_REFUSALS, 1);
	}
}

/* Returns the sum of the lifetimes of all threads. */
static double count_thread_ns(const struct recorded_process *process, uint64_t last_ns)
{
	double ns = 0;

	for (size_t i = 0; i < process->n_threads; i++) {
		const struct recorded_thread *thread = &process->threads[i];
		uint64_t end_ns = thread->end_ns ? thread->end_ns : last_ns;

		ns += thread->is_known && end_ns > thread->start_ns
			      ? (double)(end_ns - thread->start_ns)
			      : 0;
	}
	return ns;
}

void torsh_rule_evaluate_profiler_too_heavy(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const struct recorded_process *process = of->process;
	uint64_t last_ns = process->has_end_ns ? process->end_ns : of->of->last_ns;
	double ns = (double)process->waited_ns + (double)of->overhead_ns,
	       thread_ns = count_thread_ns(process, last_ns);
	double share_pct = torsh_percent(ns, thread_ns);
	struct finding *finding;

	evaluation->share_of = "the threads' time";
	if (!torsh_rule_can_evaluate(
		    evaluation,
		    thread_ns > 0 ? NULL : "it is not known how long threads were there") ||
	    !torsh_limit_passed(LIMIT_PROFILER_TOO_HEAVY_TIME, share_pct) ||
	    !torsh_limit_passed(LIMIT_PROFILER_TOO_HEAVY_LOST, ns))
		return;
	finding = torsh_rule_fire(evaluation, share_pct);
	torsh_finding_limit(finding, LIMIT_PROFILER_TOO_HEAVY_TIME, share_pct);
	torsh_finding_limit(finding, LIMIT_PROFILER_TOO_HEAVY_LOST, ns);
	torsh_finding_add(finding, "waited_ns", "ns", (double)process->waited_ns);
	torsh_finding_add(finding, "cupti_ns", "ns", (double)of->overhead_ns);
}
