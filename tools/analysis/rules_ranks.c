/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about the ranks of one job. */
#include "tools/analysis/rules.h"

/*
 * Returns the time in which the devices communicated and computed nothing: communication during
 * computation is hidden.
 */
static uint64_t exposed_ns(const struct metrics_process *of)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < of->n_devices; i++)
		ns += of->devices[i].busy_ns - of->devices[i].computing_ns;
	return ns;
}

void torsh_rule_evaluate_late_rank(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const struct metrics_waiting *waiting = &of->waiting;
	const char *reason = torsh_no_device_work(of);
	uint64_t lost_ns = exposed_ns(of);
	struct finding *finding;
	double waited_pct;
	uint32_t rank;

	if (!torsh_rule_can_evaluate(evaluation, reason ? reason : waiting->reason))
		return;
	if (lost_ns > waiting->ns)
		lost_ns = waiting->ns;
	waited_pct = torsh_percent((double)lost_ns, (double)of->scope.ns);
	if (!torsh_limit_passed(LIMIT_LATE_RANK_WAITED, waited_pct))
		return;
	finding = torsh_rule_fire(evaluation, waited_pct);
	torsh_finding_limit(finding, LIMIT_LATE_RANK_WAITED, waited_pct);
	torsh_finding_add(finding, "waited_ns", "ns", (double)waiting->ns);
	torsh_finding_add(finding, "collectives", "collectives", (double)waiting->n);
	if (waiting->late && torsh_recording_rank(waiting->late->rank, &rank))
		torsh_finding_add(finding, "late_rank", "rank", rank);
}
