/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about the operators of a program without devices. */
#include "tools/analysis/host/host_rules.h"

static bool uses_devices(const struct metrics_process *of)
{
	return of->n_devices || of->n_calls || (of->has_mode && of->mode.mode != DEVICE_HOST_ONLY);
}

const char *torsh_host_no_steps(const struct metrics_process *of)
{
	if (!of->scope.is_of_steps)
		return "no steps are known";
	return of->scope.steady_ns ? NULL : "there is no whole step after the first";
}

bool torsh_host_can_evaluate(struct evaluation *evaluation, const char *further)
{
	const struct metrics_process *of = evaluation->of;
	const char *reason = NULL;

	evaluation->share_of = STEADY_STEPS;
	if (uses_devices(of))
		reason = "a device was used: the rules of devices are about that";
	else if (!of->operator_time.n_leaves && !of->of->n_operators)
		reason = "no framework's operators were recorded";
	else if (torsh_host_no_steps(of))
		reason = torsh_host_no_steps(of);
	else
		reason = further;
	return torsh_rule_can_evaluate(evaluation, reason);
}

double torsh_host_steady_steps(const struct metrics_process *of)
{
	return (double)(of->scope.n_whole - of->scope.first_steady);
}

void torsh_rule_evaluate_step_waits(struct evaluation *evaluation)
{
	const struct operator_time *time = &evaluation->of->operator_time;
	double gaps_pct =
		torsh_percent((double)time->long_gaps_ns, (double)evaluation->of->scope.steady_ns);
	struct finding *finding;

	if (!torsh_host_can_evaluate(evaluation, NULL) ||
	    !torsh_limit_passed(LIMIT_STEP_WAITS_TIME, gaps_pct))
		return;
	finding = torsh_rule_fire(evaluation, gaps_pct);
	torsh_finding_show(finding, time->longest_gap_at_ns, time->longest_gap_ns);
	torsh_finding_limit(finding, LIMIT_STEP_WAITS_TIME, gaps_pct);
	torsh_finding_add(finding, "gaps", "gaps", (double)time->n_long_gaps);
	torsh_finding_add(finding, "longest_ns", "ns", (double)time->longest_gap_ns);
	torsh_finding_add(finding, "longest_step", "step", (double)time->longest_gap_step);
}

void torsh_rule_evaluate_python_overhead(struct evaluation *evaluation)
{
	const struct operator_time *time = &evaluation->of->operator_time;
	double gaps_pct =
		torsh_percent((double)time->short_gaps_ns, (double)evaluation->of->scope.steady_ns);
	struct finding *finding;

	if (!torsh_host_can_evaluate(evaluation, NULL) ||
	    !torsh_limit_passed(LIMIT_PYTHON_OVERHEAD_TIME, gaps_pct))
		return;
	finding = torsh_rule_fire(evaluation, gaps_pct);
	torsh_finding_show(finding, time->longest_short_gap_at_ns, time->longest_short_gap_ns);
	torsh_finding_limit(finding, LIMIT_PYTHON_OVERHEAD_TIME, gaps_pct);
	torsh_finding_add(finding, "gaps_ns", "ns", (double)time->short_gaps_ns);
	torsh_finding_add(finding, "gaps_per_step", "gaps a step",
			  (double)time->n_short_gaps / torsh_host_steady_steps(evaluation->of));
}

void torsh_rule_evaluate_small_operators(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const struct operator_time *time = &of->operator_time;
	double short_pct = torsh_percent((double)time->short_ns, (double)time->leaves_ns);
	struct finding *finding;
	double a_step;

	if (!torsh_host_can_evaluate(evaluation, NULL))
		return;
	a_step = (double)time->n_short / torsh_host_steady_steps(of);
	if (!torsh_limit_passed(LIMIT_SMALL_OPERATORS_TIME, short_pct) ||
	    !torsh_limit_passed(LIMIT_SMALL_OPERATORS_CALLS, a_step))
		return;
	finding = torsh_rule_fire(
		evaluation, torsh_percent((double)time->short_ns, (double)of->scope.steady_ns));
	torsh_finding_show(finding, time->longest_short_at_ns, time->longest_short_ns);
	torsh_finding_limit(finding, LIMIT_SMALL_OPERATORS_TIME, short_pct);
	torsh_finding_limit(finding, LIMIT_SMALL_OPERATORS_CALLS, a_step);
	torsh_finding_add(finding, "mean_ns", "ns", (double)time->short_ns / (double)time->n_short);
}

void torsh_rule_evaluate_dtype_copies(struct evaluation *evaluation)
{
	const struct operator_time *time = &evaluation->of->operator_time;
	double copies_pct = torsh_percent((double)time->conversions_ns,
					  (double)evaluation->of->scope.steady_ns);
	struct finding *finding;

	if (time->has_copies && !time->has_inputs) {
		torsh_rule_can_evaluate(evaluation, "the inputs of operators were not recorded "
						    "(TORSH_PROFILER_RECORD_SHAPES)");
		return;
	}
	if (!torsh_host_can_evaluate(evaluation, NULL) ||
	    !torsh_limit_passed(LIMIT_DTYPE_COPIES_TIME, copies_pct))
		return;
	finding = torsh_rule_fire(evaluation, copies_pct);
	finding->operator_name = "aten::copy_";
	finding->stack = time->conversion_stack;
	finding->is_stack_of_program = true;
	torsh_finding_show(finding, time->conversion_at_ns, time->longest_conversion_ns);
	torsh_finding_limit(finding, LIMIT_DTYPE_COPIES_TIME, copies_pct);
	torsh_finding_add(finding, "copies_per_step", "copies a step",
			  (double)time->n_conversions / torsh_host_steady_steps(evaluation->of));
	torsh_finding_add(finding, "copies_ns", "ns", (double)time->conversions_ns);
}
