/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about a process's use of the machine. */
#include "tools/analysis/host/gc_figures.h"
#include "tools/analysis/host/host_rules.h"

#define PAGE_BYTES 4096.0 /* the smallest size: larger pages mean fewer faults */
#define SAMPLED_NS_MIN 500000000u /* minimum time for a useful number of samples */

const char *torsh_host_no_usage(const struct metrics_process *of)
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
	const char *reason = torsh_host_no_usage(evaluation->of);
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
	torsh_finding_gains_nothing(finding,
				    "how much threads slow each other down was not measured");
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
	const char *reason = torsh_host_no_usage(evaluation->of);
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
	if (!torsh_rule_can_evaluate(evaluation, torsh_host_no_usage(evaluation->of)) ||
	    !torsh_limit_passed(LIMIT_SWAPPING_SWAPPED, swapped))
		return;
	finding = torsh_rule_fire(evaluation,
				  torsh_percent(swapped, (double)process->rss_peak_bytes));
	torsh_finding_gains_nothing(finding, "how long the disk was waited for was not measured");
	torsh_finding_limit(finding, LIMIT_SWAPPING_SWAPPED, swapped);
	torsh_finding_add(finding, "major_faults", "faults", (double)process->usage.major_faults);
}

void torsh_rule_evaluate_gc_pauses(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const struct gc_sums *sums = &of->gc.steady;
	const struct gc_place *place = torsh_gc_time_place(&of->gc);
	const char *reason = NULL;
	double whole_ns = torsh_gc_whole_ns(of, &reason), gc_ns = (double)torsh_gc_ns(sums);
	double gc_pct = torsh_percent(gc_ns, whole_ns);
	struct finding *finding;

	evaluation->share_of = torsh_gc_share_of(of);
	if (!torsh_rule_can_evaluate(evaluation, reason) ||
	    !torsh_limit_passed(LIMIT_GC_PAUSES_TIME, gc_pct))
		return;
	finding = torsh_rule_fire(evaluation, gc_pct);
	if (place) {
		finding->operator_name = place->operator_name;
		finding->stack = place->stack;
		finding->is_stack_of_program = true;
	}
	torsh_finding_gains_ns(finding, gc_ns);
	torsh_finding_show(finding, sums->longest_at_ns, sums->longest_ns);
	torsh_finding_limit(finding, LIMIT_GC_PAUSES_TIME, gc_pct);
	torsh_finding_add(finding, "runs", "runs", (double)torsh_gc_runs(sums));
	torsh_finding_add(finding, "gc_ns", "ns", gc_ns);
	torsh_finding_add(finding, "longest_ns", "ns", (double)sums->longest_ns);
	torsh_finding_add(finding, "longest_generation", "generation", sums->longest_generation);
	if (of->scope.is_of_steps)
		torsh_finding_add(finding, "longest_step", "step", (double)sums->longest_step);
	torsh_finding_add(finding, "collected", "objects", (double)sums->collected);
}

void torsh_rule_evaluate_cpu_throttled(struct evaluation *evaluation)
{
	const struct recorded_usage *usage = &evaluation->of->process->usage;
	const char *reason = torsh_host_no_usage(evaluation->of);
	double seconds = torsh_run_seconds(evaluation->of), throttled_pct;
	struct finding *finding;

	evaluation->share_of = "the run";
	if (!reason && !usage->has_throttling)
		reason = "no control group limits the process's CPU time, or it was not read";
	else if (!reason && seconds <= 0)
		reason = "it is not known how long the process ran";
	if (!torsh_rule_can_evaluate(evaluation, reason))
		return;
	throttled_pct = torsh_percent((double)usage->cpu_throttled_ns / 1e9, seconds);
	if (!torsh_limit_passed(LIMIT_CPU_THROTTLED_TIME, throttled_pct))
		return;
	finding = torsh_rule_fire(evaluation, fmin(throttled_pct, 100));
	torsh_finding_limit(finding, LIMIT_CPU_THROTTLED_TIME, throttled_pct);
	torsh_finding_add(finding, "throttled_ns", "ns", (double)usage->cpu_throttled_ns);
	torsh_finding_add(finding, "periods", "periods", (double)usage->cpu_throttled_periods);
}
