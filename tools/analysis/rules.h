/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Evaluation of rules: one function per rule, called for each process. */
#ifndef TORSH_ANALYSIS_RULES_H
#define TORSH_ANALYSIS_RULES_H

#include "tools/analysis/metrics.h"

#define STEADY_STEPS "the whole steps after the first" /* a finding's share_of */

/* One rule applied to one process. */
struct evaluation {
	struct analysis *analysis;
	enum rule rule;
	const struct metrics *metrics;
	struct metrics_process *of;
	bool is_evaluated; /* at least one item was evaluated */
	const char *reason; /* why the first unevaluated item was not */
	size_t first; /* of its findings */
	const char *share_of; /* of findings */
};

#define RULE(NAME, name, ...) void torsh_rule_evaluate_##name(struct evaluation *evaluation);
#define LIMIT(...)
#include "tools/analysis/rules.def"
#undef RULE
#undef LIMIT

/*
 * Returns how long the process ran, in seconds; without a recorded end, until the last recorded
 * time. 0: unknown.
 */
double torsh_run_seconds(const struct metrics_process *of);

/*
 * Set the reason why the rule, or an item, can't be evaluated; NULL: it can. Returns whether it
 * can.
 */
bool torsh_rule_can_evaluate(struct evaluation *evaluation, const char *reason);

/*
 * Add a finding with a share in percent of share_of; NAN: none. The result is valid until the next
 * one.
 */
struct finding *torsh_rule_fire(struct evaluation *evaluation, double share_pct);

/* Add the evidence that exceeded the limit. */
void torsh_finding_limit(struct finding *finding, enum limit limit, double value);

/* Add evidence without a limit to a finding, which holds EVIDENCE_MAX. value has the given unit. */
void torsh_finding_add(struct finding *finding, const char *name, const char *unit, double value);

/* Set what a finding gains at most; without a call it is the time that its share is. */
void torsh_finding_gains_ns(struct finding *finding, double ns);
void torsh_finding_gains_bytes(struct finding *finding, double bytes);

/* Set why it is not known what a finding gains. */
void torsh_finding_gains_nothing(struct finding *finding, const char *reason);

/* Set a time that shows the finding; ns 0: none is known. */
void torsh_finding_show(struct finding *finding, uint64_t from_ns, uint64_t ns);

/* Returns why the process has no device activity to evaluate, or NULL. */
const char *torsh_no_device_work(const struct metrics_process *of);

/* Returns why the process has no host calls to evaluate, or NULL. */
const char *torsh_no_device_calls(const struct metrics_process *of);

/* Returns "the steps" or "the run". */
const char *torsh_scope_name(const struct time_scope *scope);

/*
 * Returns the share of the scope's time that activities took: their part of the device's total
 * activity, applied to the device's busy time.
 */
double torsh_work_share(const struct metrics_process *of, const struct metrics_work *work);

/*
 * Returns the share of the scope's time in which a thread was in calls of this kind; is_steady:
 * after the first step only.
 */
double torsh_host_share(const struct metrics_process *of, enum host_kind kind, bool is_steady);

/* Returns whether the rule is about the host without devices. */
bool torsh_rule_is_of_host(enum rule rule);

/* Returns 100 * part / whole; 0 if whole is 0. */
double torsh_percent(double part, double whole);

#endif
