/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about a process's use of the machine. */
#include <math.h>

#include "tools/analysis/rules.h"

#define PAGE_BYTES 4096.0 /* the smallest size: larger pages mean fewer faults */
#define SAMPLED_NS_MIN 500000000u /* minimum time for a useful number of samples */

static const char *no_usage(const struct metrics_process *of)
{
	return of->process->usage.is_there
		       ? NULL
		       : "the process was not sampled while it ran, or too short";
}

void torsh_rule_evaluate_oversubscribed_threads(struct evaluation *evaluation)
{
	const struct recorded_usage *usage = &evaluation->of->process->usage;
	double over_pct =
		torsh_percent((double)usage->oversubscribed_ns, (double)usage->sampled_ns);
	const char *reason = no_usage(evaluation->of);
	struct finding *finding;
	double threads, a_cpu;

	evaluation->share_of = "the run";
	if (!reason && (!usage->n_cpus || usage->sampled_ns < SAMPLED_NS_MIN))
		reason = "its threads were sampled for less than 0.5 s";
	if (!torsh_rule_can_evaluate(evaluation, reason) || !usage->oversubscribed_ns)
		return;
	threads = (double)usage->runnable_ns / (double)usage->oversubscribed_ns;
	a_cpu = threads / usage->n_cpus;
	if (!torsh_limit_passed(LIMIT_OVERSUBSCRIBED_THREADS_TIME, over_pct) ||
	    !torsh_limit_passed(LIMIT_OVERSUBSCRIBED_THREADS_LOAD, a_cpu))
		return;
	finding = torsh_rule_fire(evaluation, over_pct);
	torsh_finding_limit(finding, LIMIT_OVERSUBSCRIBED_THREADS_TIME, over_pct);
	torsh_finding_limit(finding, LIMIT_OVERSUBSCRIBED_THREADS_LOAD, a_cpu);
	torsh_finding_add(finding, "threads", "threads", threads);
	torsh_finding_add(finding, "cpus", "CPUs", usage->n_cpus);
}

/* Any program faults in each page of its resident peak once. */
void torsh_rule_evaluate_page_faults(struct evaluation *evaluation)
{
	const struct recorded_process *process = evaluation->of->process;
	double seconds = torsh_run_seconds(evaluation->of),
	       faults = (double)process->usage.minor_faults;
	const char *reason = no_usage(evaluation->of);
	struct finding *finding;
	double times;

	evaluation->share_of = NULL;
	if (!reason && !(seconds > 0 && process->has_rss_peak && process->rss_peak_bytes))
		reason = "the process's resident peak is not known";
	if (!torsh_rule_can_evaluate(evaluation, reason))
		return;
	times = faults / ((double)process->rss_peak_bytes / PAGE_BYTES);
	if (!torsh_limit_passed(LIMIT_PAGE_FAULTS_TIMES, times) ||
	    !torsh_limit_passed(LIMIT_PAGE_FAULTS_RATE, faults / seconds))
		return;
	finding = torsh_rule_fire(evaluation, NAN);
	torsh_finding_add(finding, "faults", "faults", faults);
	torsh_finding_limit(finding, LIMIT_PAGE_FAULTS_RATE, faults / seconds);
	torsh_finding_limit(finding, LIMIT_PAGE_FAULTS_TIMES, times);
	torsh_finding_add(finding, "resident", "bytes", (double)process->rss_peak_bytes);
}

void torsh_rule_evaluate_swapping(struct evaluation *evaluation)
{
	const struct recorded_process *process = evaluation->of->process;
	double swapped = (double)process->usage.swap_peak_bytes;
	struct finding *finding;

	evaluation->share_of = "the resident peak";
	if (!torsh_rule_can_evaluate(evaluation, no_usage(evaluation->of)) ||
	    !torsh_limit_passed(LIMIT_SWAPPING_SWAPPED, swapped))
		return;
	finding = torsh_rule_fire(evaluation,
				  torsh_percent(swapped, (double)process->rss_peak_bytes));
	torsh_finding_limit(finding, LIMIT_SWAPPING_SWAPPED, swapped);
	torsh_finding_add(finding, "major_faults", "faults", (double)process->usage.major_faults);
}
