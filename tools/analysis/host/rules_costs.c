/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about what single operators cost the host. */
#include "tools/analysis/host/host_rules.h"

static double per_step(const struct metrics_process *of, double n)
{
	return n / torsh_host_steady_steps(of);
}

/*
 * Fire if the sum's share of the steps passes the limit, which names the share. NULL: it does not.
 */
static struct finding *fire_cost(struct evaluation *evaluation, const struct cost_sum *sum,
				 enum limit limit)
{
	double share_pct = torsh_percent((double)sum->ns, (double)evaluation->of->scope.steady_ns);
	struct finding *finding;

	if (!torsh_limit_passed(limit, share_pct))
		return NULL;
	finding = torsh_rule_fire(evaluation, share_pct);
	finding->operator_name = sum->operator_name;
	finding->stack = sum->stack;
	finding->is_stack_of_program = true;
	torsh_finding_show(finding, sum->longest_at_ns, sum->longest_ns);
	torsh_finding_limit(finding, limit, share_pct);
	return finding;
}

static const char *no_inputs(const struct metrics_process *of)
{
	return of->costs.has_inputs ? NULL
				    : "the inputs of operators were not recorded "
				      "(TORSH_PROFILER_RECORD_SHAPES)";
}

/* ---- one operator each ----------------------------------------------------------------------- */

/* Fire by time alone; n: the name of the calls of a step, and their unit. */
static struct finding *evaluate_cost(struct evaluation *evaluation, enum host_cost cost,
				     enum limit limit, const char *n, const char *unit)
{
	const struct cost_sum *sum = &evaluation->of->costs.of[cost];
	struct finding *finding = NULL;

	if (torsh_host_can_evaluate(evaluation, NULL))
		finding = fire_cost(evaluation, sum, limit);
	if (!finding)
		return NULL;
	torsh_finding_add(finding, "cost_ns", "ns", (double)sum->ns);
	torsh_finding_add(finding, n, unit, per_step(evaluation->of, (double)sum->n));
	return finding;
}

void torsh_rule_evaluate_scalar_reads(struct evaluation *evaluation)
{
	evaluate_cost(evaluation, COST_SCALAR_READ, LIMIT_SCALAR_READS_TIME, "reads_per_step",
		      "reads a step");
}

void torsh_rule_evaluate_contiguous_copies(struct evaluation *evaluation)
{
	evaluate_cost(evaluation, COST_CONTIGUOUS, LIMIT_CONTIGUOUS_COPIES_TIME, "copies_per_step",
		      "copies a step");
}

void torsh_rule_evaluate_gradient_fills(struct evaluation *evaluation)
{
	evaluate_cost(evaluation, COST_ZERO_GRAD, LIMIT_GRADIENT_FILLS_TIME, "calls_per_step",
		      "calls a step");
}

void torsh_rule_evaluate_guard_checks(struct evaluation *evaluation)
{
	evaluate_cost(evaluation, COST_GUARDS, LIMIT_GUARD_CHECKS_TIME, "lookups_per_step",
		      "calls a step");
}

void torsh_rule_evaluate_constant_tensors(struct evaluation *evaluation)
{
	evaluate_cost(evaluation, COST_CONSTANT, LIMIT_CONSTANT_TENSORS_TIME, "calls_per_step",
		      "calls a step");
}

void torsh_rule_evaluate_float64_operators(struct evaluation *evaluation)
{
	struct finding *finding =
		evaluate_cost(evaluation, COST_FLOAT64, LIMIT_FLOAT64_OPERATORS_TIME,
			      "calls_per_step", "calls a step");

	/* float32 has half of the bytes, and twice the numbers in a register. */
	if (finding)
		torsh_finding_gains_ns(finding,
				       (double)evaluation->of->costs.of[COST_FLOAT64].ns / 2);
}

/* ---- with more than their time --------------------------------------------------------------- */

static void growing_cat(struct evaluation *evaluation, const struct growing_tensor *tensor)
{
	double whole = (double)(tensor->ended + (tensor->has_grown ? tensor->now : 0));
	double times = whole > 0 ? (double)tensor->copied / whole : 0;
	struct finding *finding;

	if (!torsh_limit_passed(LIMIT_GROWING_CAT_TIMES, times))
		return;
	finding = fire_cost(evaluation, &tensor->sum, LIMIT_GROWING_CAT_TIME);
	if (!finding)
		return;
	torsh_finding_limit(finding, LIMIT_GROWING_CAT_TIMES, times);
	torsh_finding_add(finding, "calls", "calls", (double)tensor->sum.n);
	torsh_finding_add(finding, "cost_ns", "ns", (double)tensor->sum.ns);
}

void torsh_rule_evaluate_growing_cat(struct evaluation *evaluation)
{
	const struct host_costs *costs = &evaluation->of->costs;

	if (!torsh_host_can_evaluate(evaluation, no_inputs(evaluation->of)))
		return;
	for (size_t i = 0; i < costs->n_growing; i++)
		growing_cat(evaluation, &costs->growing[i]);
}

void torsh_rule_evaluate_optimizer_loop(struct evaluation *evaluation)
{
	const struct host_costs *costs = &evaluation->of->costs;
	double calls = per_step(evaluation->of, (double)costs->of[COST_OPTIMIZER_OPERATOR].n);
	struct finding *finding;

	if (!torsh_host_can_evaluate(evaluation, NULL) || costs->has_list_operators ||
	    !torsh_limit_passed(LIMIT_OPTIMIZER_LOOP_CALLS, calls))
		return;
	finding = fire_cost(evaluation, &costs->of[COST_OPTIMIZER], LIMIT_OPTIMIZER_LOOP_TIME);
	if (!finding)
		return;
	torsh_finding_limit(finding, LIMIT_OPTIMIZER_LOOP_CALLS, calls);
	torsh_finding_add(finding, "cost_ns", "ns", (double)costs->of[COST_OPTIMIZER].ns);
}

void torsh_rule_evaluate_dense_embedding_gradients(struct evaluation *evaluation)
{
	const struct host_costs *costs = &evaluation->of->costs;
	const struct cost_sum *sum = &costs->of[COST_EMBEDDING_GRADIENT];
	double ratio = costs->n_indices ? (double)costs->n_rows / (double)costs->n_indices : 0;
	struct finding *finding;

	if (!torsh_host_can_evaluate(evaluation, no_inputs(evaluation->of)) ||
	    !torsh_limit_passed(LIMIT_DENSE_EMBEDDING_GRADIENTS_ROWS, ratio))
		return;
	finding = fire_cost(evaluation, sum, LIMIT_DENSE_EMBEDDING_GRADIENTS_TIME);
	if (!finding)
		return;
	torsh_finding_limit(finding, LIMIT_DENSE_EMBEDDING_GRADIENTS_ROWS, ratio);
	torsh_finding_add(finding, "rows", "rows", (double)costs->n_rows);
	torsh_finding_add(finding, "indices", "indices", (double)costs->n_indices);
	torsh_finding_add(finding, "cost_ns", "ns", (double)sum->ns);
}

/* ---- autograd -------------------------------------------------------------------------------- */

void torsh_rule_evaluate_training_layers(struct evaluation *evaluation)
{
	const struct host_costs *costs = &evaluation->of->costs;
	const struct cost_sum *sum = &costs->of[COST_TRAINING_LAYER];
	struct finding *finding;

	if (!torsh_host_can_evaluate(evaluation, no_inputs(evaluation->of)) || costs->has_backward)
		return;
	finding = fire_cost(evaluation, sum, LIMIT_TRAINING_LAYERS_TIME);
	if (!finding)
		return;
	torsh_finding_add(finding, "cost_ns", "ns", (double)sum->ns);
	torsh_finding_add(finding, "layers_per_step", "layers a step",
			  per_step(evaluation->of, (double)sum->n));
}

void torsh_rule_evaluate_unused_graph(struct evaluation *evaluation)
{
	const struct host_costs *costs = &evaluation->of->costs;
	double nodes = 0;
	struct finding *finding;

	if (!torsh_host_can_evaluate(evaluation, NULL) || costs->has_backward)
		return;
	if (costs->last_node)
		nodes = per_step(evaluation->of,
				 (double)(costs->last_node - 1 - costs->first_node));
	if (!torsh_limit_passed(LIMIT_UNUSED_GRAPH_NODES, nodes))
		return;
	finding = torsh_rule_fire(evaluation, NAN);
	torsh_finding_limit(finding, LIMIT_UNUSED_GRAPH_NODES, nodes);
	torsh_finding_gains_nothing(finding,
				    "the time that recording the graph takes was not measured");
}

#define PASSES_MIN 5u

/*
 * The passes of steady steps; returns whether most of them have more nodes than the one before.
 * What is gained is the part of each pass that nodes take which the first one did not have: a pass
 * that something else held up, be it the first, makes no difference of times.
 */
static bool grows(const struct metrics_process *of, const struct backward_pass **first,
		  const struct backward_pass **last, double *gain_ns)
{
	const struct backward_pass *passes = of->costs.backward;
	size_t n = 0, n_more = 0;

	*first = *last = NULL;
	*gain_ns = 0;
	for (size_t i = of->scope.first_steady; i < of->scope.n_whole; i++) {
		if (!passes[i].n_nodes)
			continue;
		n++;
		if (!*first)
			*first = *last = &passes[i];
		n_more += passes[i].n_nodes > (*last)->n_nodes;
		*last = &passes[i];
		if (passes[i].n_nodes > (*first)->n_nodes)
			*gain_ns += (double)passes[i].ns *
				    (double)(passes[i].n_nodes - (*first)->n_nodes) /
				    (double)passes[i].n_nodes;
	}
	return n >= PASSES_MIN && n_more * 5 >= (n - 1) * 4;
}

void torsh_rule_evaluate_graph_growth(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const struct backward_pass *first, *last;
	double times, gain_ns;
	struct finding *finding;

	if (!torsh_host_can_evaluate(evaluation, NULL) || !of->costs.backward ||
	    !grows(of, &first, &last, &gain_ns))
		return;
	times = (double)last->n_nodes / (double)first->n_nodes;
	if (!torsh_limit_passed(LIMIT_GRAPH_GROWTH_TIMES, times))
		return;
	finding = torsh_rule_fire(evaluation, torsh_percent(gain_ns, (double)of->scope.steady_ns));
	torsh_finding_gains_ns(finding, gain_ns);
	torsh_finding_limit(finding, LIMIT_GRAPH_GROWTH_TIMES, times);
	torsh_finding_add(finding, "first_nodes", "nodes", (double)first->n_nodes);
	torsh_finding_add(finding, "last_nodes", "nodes", (double)last->n_nodes);
}
