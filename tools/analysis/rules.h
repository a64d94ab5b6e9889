/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How rules are evaluated: one function each, run for each process. */
#ifndef TORSH_ANALYSIS_RULES_H
#define TORSH_ANALYSIS_RULES_H

#include "tools/analysis/metrics.h"

/* One rule about one process. */
struct evaluation {
	struct analysis *analysis;
	enum rule rule;
	const struct metrics *metrics;
	struct metrics_process *of;
	bool is_evaluated; /* something could be */
	const char *reason; /* why the first thing that could not be evaluated was not */
	size_t first; /* of its findings */
	const char *share_of; /* of findings */
};

#define RULE(NAME, name, ...) void torsh_rule_evaluate_##name(struct evaluation *evaluation);
#define LIMIT(...)
#include "tools/analysis/rules.def"
#undef RULE
#undef LIMIT

/*
 * The time that the process ran, in seconds; without a recorded end, until the last time that the
 * recording has. 0: unknown.
 */
double torsh_run_seconds(const struct metrics_process *of);

/* reason NULL: something can be evaluated. Else it can't, and why. Returns whether it can. */
bool torsh_rule_can_evaluate(struct evaluation *evaluation, const char *reason);

/* A finding, of a share in percent of share_of; NAN: it has none. Until the next one. */
struct finding *torsh_rule_fire(struct evaluation *evaluation, double share_pct);

/* The value that passed the limit; and others that show what there was. */
void torsh_finding_limit(struct finding *finding, enum limit limit, double value);

/* Add evidence without a limit to a finding, which holds EVIDENCE_MAX. value is in unit. */
void torsh_finding_add(struct finding *finding, const char *name, const char *unit, double value);

/* Why nothing can be reported for the process's devices, or NULL. */
const char *torsh_no_device_work(const struct metrics_process *of);

/* Why nothing can be reported for calls that give devices no work, or NULL. */
const char *torsh_no_device_calls(const struct metrics_process *of);

/* "the steps" or "the run". */
const char *torsh_scope_name(const struct time_scope *scope);

/*
 * The part of the scope's time that work took: of the time in which its device was busy, as much as
 * of the device's work.
 */
double torsh_work_share(const struct metrics_process *of, const struct metrics_work *work);

/*
 * The part of the scope's time in which a thread was in calls of this kind; after the first step
 * only: is_steady.
 */
double torsh_host_share(const struct metrics_process *of, enum host_kind kind, bool is_steady);

/* Is the rule about what the host does without devices? */
bool torsh_rule_is_of_host(enum rule rule);

/* 100 * part / whole; 0 of nothing. */
double torsh_percent(double part, double whole);

#endif
