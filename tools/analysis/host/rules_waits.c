/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about what the program's first thread waits for in the steps. */
#include "tools/analysis/host/host_rules.h"

static bool can_evaluate(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const char *reason = torsh_host_no_steps(of);

	evaluation->share_of = STEADY_STEPS;
	if (!torsh_process_attributes_find(&of->of->facts, "waits") && !of->costs.waits.are_there)
		reason = "waits were not recorded (TORSH_PROFILER_ACTIVITIES does not name waits)";
	return torsh_rule_can_evaluate(evaluation, reason);
}

/* kinds: bits. */
static void evaluate_waits(struct evaluation *evaluation, uint32_t kinds, enum limit limit)
{
	const struct metrics_process *of = evaluation->of;
	struct cost_sum sum = {0};
	struct finding *finding;
	double waited_pct;

	if (!can_evaluate(evaluation))
		return;
	for (uint32_t kind = 0; kind < N_THREAD_WAIT_KINDS; kind++) {
		if (kinds >> kind & 1)
			torsh_cost_add(&sum, &of->costs.waits.of_kind[kind]);
	}
	waited_pct = torsh_percent((double)sum.ns, (double)of->scope.steady_ns);
	if (!torsh_limit_passed(limit, waited_pct))
		return;
	finding = torsh_rule_fire(evaluation, waited_pct);
	finding->operator_name = sum.operator_name;
	finding->stack = sum.stack;
	finding->is_stack_of_program = true;
	torsh_finding_show(finding, sum.longest_at_ns, sum.longest_ns);
	torsh_finding_limit(finding, limit, waited_pct);
	torsh_finding_add(finding, "waited_ns", "ns", (double)sum.ns);
	torsh_finding_add(finding, "waits", "waits", (double)sum.n);
}

#define KIND(NAME) (UINT32_C(1) << THREAD_WAIT_##NAME)

void torsh_rule_evaluate_sleeps(struct evaluation *evaluation)
{
	evaluate_waits(evaluation, KIND(SLEEP), LIMIT_SLEEPS_TIME);
}

void torsh_rule_evaluate_file_waits(struct evaluation *evaluation)
{
	evaluate_waits(evaluation, KIND(READ) | KIND(WRITE) | KIND(DISK), LIMIT_FILE_WAITS_TIME);
}

void torsh_rule_evaluate_network_waits(struct evaluation *evaluation)
{
	evaluate_waits(evaluation, KIND(RECEIVE) | KIND(SEND) | KIND(CONNECT),
		       LIMIT_NETWORK_WAITS_TIME);
}

void torsh_rule_evaluate_python_lock_waits(struct evaluation *evaluation)
{
	evaluate_waits(evaluation, KIND(GIL), LIMIT_PYTHON_LOCK_WAITS_TIME);
}
