/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about DataLoaders. */
#include <stdlib.h>

#include "tools/analysis/host/host_rules.h"
#include "tools/base/die.h"

static bool can_evaluate(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const char *reason = of->of->n_operators ? torsh_host_no_steps(of)
						 : "no framework's operators were recorded";

	evaluation->share_of = STEADY_STEPS;
	return torsh_rule_can_evaluate(evaluation, reason);
}

static double share_of_steps(const struct evaluation *evaluation, const struct cost_sum *sum)
{
	return torsh_percent((double)sum->ns, (double)evaluation->of->scope.steady_ns);
}

static struct finding *fire(struct evaluation *evaluation, const struct cost_sum *sum,
			    enum limit limit)
{
	double load_pct = share_of_steps(evaluation, sum);
	struct finding *finding = torsh_rule_fire(evaluation, load_pct);

	finding->stack = sum->stack;
	finding->is_stack_of_program = true;
	torsh_finding_show(finding, sum->longest_at_ns, sum->longest_ns);
	torsh_finding_limit(finding, limit, load_pct);
	torsh_finding_add(finding, "load_ns", "ns", (double)sum->ns);
	torsh_finding_add(finding, "batches", "batches", (double)sum->n);
	return finding;
}

void torsh_rule_evaluate_loader_without_workers(struct evaluation *evaluation)
{
	const struct cost_sum *sum = &evaluation->of->costs.of[COST_LOAD_ALONE];

	if (can_evaluate(evaluation) &&
	    torsh_limit_passed(LIMIT_LOADER_WITHOUT_WORKERS_TIME, share_of_steps(evaluation, sum)))
		fire(evaluation, sum, LIMIT_LOADER_WITHOUT_WORKERS_TIME);
}

void torsh_rule_evaluate_loader_small_operators(struct evaluation *evaluation)
{
	const struct host_costs *costs = &evaluation->of->costs;
	const struct cost_sum *batches = &costs->of[COST_LOAD_ALONE],
			      *operators = &costs->of[COST_LOAD_OPERATOR];
	double a_batch = batches->n ? (double)operators->n / (double)batches->n : 0;
	struct finding *finding;

	if (!can_evaluate(evaluation) ||
	    !torsh_limit_passed(LIMIT_LOADER_SMALL_OPERATORS_CALLS, a_batch) ||
	    !torsh_limit_passed(LIMIT_LOADER_SMALL_OPERATORS_TIME,
				share_of_steps(evaluation, batches)))
		return;
	finding = fire(evaluation, batches, LIMIT_LOADER_SMALL_OPERATORS_TIME);
	torsh_finding_limit(finding, LIMIT_LOADER_SMALL_OPERATORS_CALLS, a_batch);
	torsh_finding_add(finding, "mean_ns", "ns", (double)operators->ns / (double)operators->n);
}

/* ---- workers --------------------------------------------------------------------------------- */

struct workers {
	const struct recorded_process **items; /* by the time of their start */
	size_t n;
	uint64_t most; /* at once */
};

static int compare_starts(const void *a, const void *b)
{
	const struct recorded_process *x = *(const struct recorded_process *const *)a;
	const struct recorded_process *y = *(const struct recorded_process *const *)b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static uint64_t end_of(const struct recorded_process *process)
{
	return process->has_end_ns ? process->end_ns : UINT64_MAX;
}

static uint64_t count_running(const struct workers *workers, uint64_t at_ns)
{
	uint64_t n = 0;

	for (size_t i = 0; i < workers->n && workers->items[i]->start_ns <= at_ns; i++)
		n += end_of(workers->items[i]) > at_ns;
	return n;
}

static struct workers find_workers(const struct evaluation *evaluation)
{
	const struct metrics *metrics = evaluation->metrics;
	struct workers workers = {
		.items = torsh_need_items(NULL, 0, metrics->n, sizeof(*workers.items))};

	for (size_t i = 0; i < metrics->n; i++) {
		const struct recorded_process *process = metrics->processes[i].process;

		if (process->is_data_worker && process->parent_pid == evaluation->of->process->pid)
			workers.items[workers.n++] = process;
	}
	qsort(workers.items, workers.n, sizeof(*workers.items), compare_starts);
	for (size_t i = 0; i < workers.n; i++) {
		uint64_t n = count_running(&workers, workers.items[i]->start_ns);

		workers.most = n > workers.most ? n : workers.most;
	}
	return workers;
}

void torsh_rule_evaluate_loader_behind(struct evaluation *evaluation)
{
	const struct cost_sum *sum = &evaluation->of->costs.of[COST_LOAD_BY_WORKERS];
	struct workers workers;
	struct finding *finding;

	if (!can_evaluate(evaluation) ||
	    !torsh_limit_passed(LIMIT_LOADER_BEHIND_TIME, share_of_steps(evaluation, sum)))
		return;
	workers = find_workers(evaluation);
	finding = fire(evaluation, sum, LIMIT_LOADER_BEHIND_TIME);
	if (workers.most)
		torsh_finding_add(finding, "workers", "workers", (double)workers.most);
	free(workers.items);
}

/* Returns the end of the first batch that ends after that time; UINT64_MAX: there is none. */
static uint64_t next_batch(const struct busy *batches, uint64_t at_ns)
{
	for (size_t i = 0; i < batches->n; i++) {
		if (batches->intervals[i].end_ns > at_ns)
			return batches->intervals[i].end_ns;
	}
	return UINT64_MAX;
}

/*
 * Workers that were started after others had made batches; all those of one epoch are started
 * before its first batch. Returns how often, and adds the time until the next batch.
 */
static uint64_t count_restarts(const struct workers *workers, const struct busy *batches,
			       uint64_t *lost_ns)
{
	uint64_t n = 0;

	for (size_t i = 1; i < workers->n; i++) {
		uint64_t start_ns = workers->items[i]->start_ns;
		uint64_t until_ns = next_batch(batches, start_ns);

		if (until_ns == UINT64_MAX ||
		    next_batch(batches, workers->items[i - 1]->start_ns) > start_ns)
			continue;
		n++;
		*lost_ns += until_ns - start_ns;
	}
	return n;
}

void torsh_rule_evaluate_loader_restarts(struct evaluation *evaluation)
{
	double run_ns = torsh_run_seconds(evaluation->of) * 1e9, lost_pct;
	uint64_t lost_ns = 0, n;
	struct workers workers;
	struct finding *finding;

	if (!can_evaluate(evaluation))
		return;
	workers = find_workers(evaluation);
	n = count_restarts(&workers, &evaluation->of->costs.batches, &lost_ns);
	free(workers.items);
	evaluation->share_of = "the run";
	lost_pct = torsh_percent((double)lost_ns, run_ns);
	if (!torsh_limit_passed(LIMIT_LOADER_RESTARTS_RESTARTS, (double)n) ||
	    !torsh_limit_passed(LIMIT_LOADER_RESTARTS_TIME, lost_pct))
		return;
	finding = torsh_rule_fire(evaluation, lost_pct);
	torsh_finding_gains_ns(finding, (double)lost_ns);
	torsh_finding_limit(finding, LIMIT_LOADER_RESTARTS_RESTARTS, (double)n);
	torsh_finding_limit(finding, LIMIT_LOADER_RESTARTS_TIME, lost_pct);
	torsh_finding_add(finding, "lost_ns", "ns", (double)lost_ns);
}

void torsh_rule_evaluate_loader_too_many_workers(struct evaluation *evaluation)
{
	uint32_t n_cpus = evaluation->of->process->usage.n_cpus;
	const char *reason = torsh_host_no_usage(evaluation->of);
	struct workers workers;
	struct finding *finding;
	double a_cpu;

	evaluation->share_of = NULL;
	if (!reason && !n_cpus)
		reason = "it is not known how many CPUs the process may use";
	if (!torsh_rule_can_evaluate(evaluation, reason))
		return;
	workers = find_workers(evaluation);
	free(workers.items);
	a_cpu = (double)workers.most / n_cpus;
	if (!torsh_limit_passed(LIMIT_LOADER_TOO_MANY_WORKERS_WORKERS, a_cpu))
		return;
	finding = torsh_rule_fire(evaluation, NAN);
	torsh_finding_gains_nothing(finding,
				    "how much the workers slow each other down was not measured");
	torsh_finding_limit(finding, LIMIT_LOADER_TOO_MANY_WORKERS_WORKERS, a_cpu);
	torsh_finding_add(finding, "workers", "workers", (double)workers.most);
	torsh_finding_add(finding, "cpus", "CPUs", n_cpus);
}
