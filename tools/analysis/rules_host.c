/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about calls that the host makes, and its data loading. */
#include "tools/analysis/rules.h"

/* How many calls of one kind, name and operator count for a rule, and their total time. */
struct counted_calls {
	double n, ns;
};

enum which_calls { CALLS_ALL, CALLS_STEADY, CALLS_OUTSIDE };

static struct counted_calls count(const struct metrics_call *call, enum which_calls which)
{
	if (which == CALLS_STEADY)
		return (struct counted_calls){(double)call->n_steady, (double)call->steady_ns};
	if (which == CALLS_OUTSIDE && call->n)
		return (struct counted_calls){(double)call->n_outside,
					      (double)call->total_ns * (double)call->n_outside /
						      (double)call->n};
	return (struct counted_calls){(double)call->n, (double)call->total_ns};
}

/*
 * Fire a finding per name and operator. value: compared with the limit; NULL: the number of calls
 * is.
 */
static void fire_calls(struct evaluation *evaluation, enum host_kind kind, enum which_calls which,
		       enum limit limit, const double *value)
{
	const struct metrics_process *of = evaluation->of;
	const struct host_time *all = &of->host[kind];
	double all_ns = (double)(which == CALLS_STEADY ? all->steady_ns : all->total_ns);
	double all_pct = torsh_host_share(of, kind, which == CALLS_STEADY);

	for (size_t i = 0; i < of->n_calls; i++) {
		const struct metrics_call *call = &of->calls[i];
		struct counted_calls calls = count(call, which);
		struct finding *finding;

		if (call->key.kind != kind || !(calls.n > 0))
			continue;
		finding = torsh_rule_fire(evaluation, all_ns > 0 ? calls.ns / all_ns * all_pct : 0);
		finding->operator_name = call->operator_name;
		finding->api = torsh_timeline_label(of->process, call->key.api);
		finding->stack = call->key.stack;
		torsh_finding_show(finding, call->longest_at_ns, call->longest_ns);
		torsh_finding_limit(finding, limit, value ? *value : calls.n);
		if (value)
			torsh_finding_add(finding, "calls", "calls", calls.n);
		torsh_finding_add(finding, "host_ns", "ns", calls.ns);
	}
}

/* ---- copies ---------------------------------------------------------------------------------- */

void torsh_rule_evaluate_pageable_async_copy(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const char *reason = torsh_no_device_work(of);

	if (!reason && of->n_unknown_memory)
		reason = "of some copies it was not recorded what memory they are of";
	torsh_rule_can_evaluate(evaluation, reason);
	fire_calls(evaluation, HOST_PAGEABLE_COPY, CALLS_ALL, LIMIT_PAGEABLE_ASYNC_COPY_COPIES,
		   NULL);
}

void torsh_rule_evaluate_synchronous_copy(struct evaluation *evaluation)
{
	if (torsh_rule_can_evaluate(evaluation, torsh_no_device_work(evaluation->of)))
		fire_calls(evaluation, HOST_SYNCHRONOUS_COPY, CALLS_ALL,
			   LIMIT_SYNCHRONOUS_COPY_COPIES, NULL);
}

void torsh_rule_evaluate_synchronous_memset(struct evaluation *evaluation)
{
	if (torsh_rule_can_evaluate(evaluation, torsh_no_device_work(evaluation->of)))
		fire_calls(evaluation, HOST_SYNCHRONOUS_MEMSET, CALLS_ALL,
			   LIMIT_SYNCHRONOUS_MEMSET_MEMSETS, NULL);
}

/* ---- waits, allocations, code ---------------------------------------------------------------- */

static const char *no_steps(const struct metrics_process *of)
{
	return of->scope.is_of_steps && of->scope.n ? NULL : "no steps are known";
}

static const char *no_steady_steps(const struct metrics_process *of)
{
	const char *reason = no_steps(of);

	if (reason)
		return reason;
	return of->scope.first_steady < of->scope.n_whole
		       ? NULL
		       : "there is no whole step after the first";
}

static const char *first_of(const char *one, const char *other)
{
	return one ? one : other;
}

void torsh_rule_evaluate_excess_synchronisation(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	double a_step;

	if (!torsh_rule_can_evaluate(evaluation, first_of(torsh_no_device_calls(of), no_steps(of))))
		return;
	a_step = (double)of->host[HOST_WAIT].n_outside / (double)of->scope.n_whole;
	if (torsh_limit_passed(LIMIT_EXCESS_SYNCHRONISATION_CALLS, a_step))
		fire_calls(evaluation, HOST_WAIT, CALLS_OUTSIDE, LIMIT_EXCESS_SYNCHRONISATION_CALLS,
			   &a_step);
}

void torsh_rule_evaluate_blocking_calls(struct evaluation *evaluation)
{
	double share_pct = torsh_host_share(evaluation->of, HOST_WAIT, false);

	if (!torsh_rule_can_evaluate(evaluation, torsh_no_device_calls(evaluation->of)))
		return;
	if (torsh_limit_passed(LIMIT_BLOCKING_CALLS_TIME, share_pct))
		fire_calls(evaluation, HOST_WAIT, CALLS_ALL, LIMIT_BLOCKING_CALLS_TIME, &share_pct);
}

void torsh_rule_evaluate_allocation_churn(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	double a_step;

	evaluation->share_of = STEADY_STEPS;
	if (!torsh_rule_can_evaluate(evaluation,
				     first_of(torsh_no_device_calls(of), no_steady_steps(of))))
		return;
	a_step = (double)of->host[HOST_ALLOCATION].n_steady /
		 (double)(of->scope.n_whole - of->scope.first_steady);
	if (torsh_limit_passed(LIMIT_ALLOCATION_CHURN_CALLS, a_step))
		fire_calls(evaluation, HOST_ALLOCATION, CALLS_STEADY, LIMIT_ALLOCATION_CHURN_CALLS,
			   &a_step);
}

void torsh_rule_evaluate_module_loads(struct evaluation *evaluation)
{
	evaluation->share_of = STEADY_STEPS;
	if (torsh_rule_can_evaluate(evaluation, first_of(torsh_no_device_calls(evaluation->of),
							 no_steady_steps(evaluation->of))))
		fire_calls(evaluation, HOST_MODULE, CALLS_STEADY, LIMIT_MODULE_LOADS_CALLS, NULL);
}

/* ---- data ------------------------------------------------------------------------------------ */

void torsh_rule_evaluate_data_loading(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const char *reason =
		of->of->n_operators ? no_steps(of) : "no framework's operators were recorded";
	double data_pct = torsh_percent((double)of->data_ns, (double)of->data_scope_ns);
	struct finding *finding;

	if (!reason && !of->data_scope_ns)
		reason = "no step lies wholly in the time that is looked at";
	if (!torsh_rule_can_evaluate(evaluation, reason) ||
	    !torsh_limit_passed(LIMIT_DATA_LOADING_TIME, data_pct))
		return;
	finding = torsh_rule_fire(evaluation, data_pct);
	torsh_finding_limit(finding, LIMIT_DATA_LOADING_TIME, data_pct);
	torsh_finding_add(finding, "data_ns", "ns", (double)of->data_ns);
	torsh_finding_add(finding, "steps", "steps", (double)of->of->steps.n);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void evaluate_shapes(struct evaluation *evaluation, const struct metrics_operator *op)
{
	const struct time_scope *scope = &evaluation->of->scope;
	double n_steps = (double)(scope->n_whole - scope->first_steady);
	double steps_pct = torsh_percent((double)op->n_shapes_steps, n_steps);
	struct finding *finding;

	if (!torsh_limit_passed(LIMIT_NEW_SHAPES_SHAPES, op->shapes.n_keys) ||
	    !torsh_limit_passed(LIMIT_NEW_SHAPES_STEPS, steps_pct))
		return;
	finding = torsh_rule_fire(
		evaluation, torsh_percent((double)op->new_shapes_ns, (double)scope->steady_ns));
	finding->operator_name = op->name;
	torsh_finding_limit(finding, LIMIT_NEW_SHAPES_SHAPES, op->shapes.n_keys);
	torsh_finding_limit(finding, LIMIT_NEW_SHAPES_STEPS, steps_pct);
	torsh_finding_add(finding, "calls", "calls", (double)op->n);
	torsh_finding_add(finding, "new_shapes_ns", "ns", (double)op->new_shapes_ns);
}

static const char *why_no_shapes(const struct metrics_process *of)
{
	if (!of->scope.is_of_steps)
		return "no steps are known";
	if (of->scope.first_steady == of->scope.n_whole)
		return "there are no steps after the first";
	for (size_t i = 0; i < of->n_operators; i++) {
		if (of->operators[i].shapes.n_keys)
			return NULL;
	}
	return "no inputs of operators that launched something were recorded";
}

void torsh_rule_evaluate_new_shapes(struct evaluation *evaluation)
{
	const struct metrics_process *of = evaluation->of;
	const char *reason = torsh_no_device_work(of);

	if (!torsh_rule_can_evaluate(evaluation, reason ? reason : why_no_shapes(of)))
		return;
	for (size_t i = 0; i < of->n_operators; i++)
		evaluate_shapes(evaluation, &of->operators[i]);
}
