/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/report/validate judges the claims of a brief by recordings from before and after a change.
 * Read this file first.
 *
 * A claim predicts that a figure becomes less, by so much at most, if its cause goes away. It held
 * if the cause is gone, or half of it, and the figure became less beyond the spread by at least
 * VALIDATE_PART of what was predicted. Whether the program still computes the same is judged by
 * what it recorded itself, or by files of what it printed (results.h).
 */
#ifndef TORSH_REPORT_VALIDATE_VALIDATION_H
#define TORSH_REPORT_VALIDATE_VALIDATION_H

#include "tools/compare/change.h"
#include "tools/report/brief/claims.h"
#include "tools/report/validate/results.h"

#define VALIDATE_PART 0.5 /* ours: a prediction is an upper bound */

enum verdict { VERDICT_HELD, VERDICT_IN_PART, VERDICT_FAILED, VERDICT_NOT_TRIED, VERDICT_UNKNOWN };
enum cause_change { CAUSE_GONE, CAUSE_SMALLER, CAUSE_THERE, CAUSE_UNKNOWN };

extern const char *const torsh_verdict_names[];
extern const char *const torsh_cause_names[];

/* What one run shows of a claim's cause. */
struct cause {
	enum rule_state state;
	double gain_pct; /* if it is there; NAN: its size is not known */
};

struct measured_run {
	char *path;
	bool has[N_FIGURES];
	uint64_t figures[N_FIGURES];
	uint64_t n_steps; /* whole ones after the first */
	struct cause *causes; /* one for each claim */
};

struct claim_verdict {
	const struct claim *claim;
	enum brief_figure figure; /* that was compared */
	enum verdict verdict;
	const char *reason; /* NULL: the numbers are enough */
	enum cause_change cause;
	double before_pct, after_pct; /* medians of the cause's size; NAN: not known, or none */
	struct change change; /* of the figure */
	double seen_pct; /* how much less it is; NAN: not known */
};

/* Where runs have different numbers of steps: the time that is compared. */
enum validate_per { PER_UNDECIDED, PER_STEP, PER_RUN };

struct validation {
	const struct claims *claims;
	struct measured_run *runs; /* those before first */
	size_t n_before, n_after, n_measured;
	enum validate_per per;
	struct change_rules rules;
	struct change figures[N_FIGURES]; /* is_known: all runs have it */
	struct claim_verdict *verdicts; /* one for each claim */
	struct results results;
};

/* Begin a validation; the claims must outlive it. */
void torsh_validation_begin(struct validation *validation, const struct claims *claims,
			    size_t n_before, size_t n_after);

/* Add the next run, those before first. prepass: of its timeline. */
void torsh_validation_measure(struct validation *validation, const struct brief *brief,
			      const struct prepass *prepass);

/* Judge, once all runs are measured. */
void torsh_validation_judge(struct validation *validation);

/* Returns true if some claim held, none failed, and the results are not different. */
bool torsh_validation_holds(const struct validation *validation);

/* Print it as text. */
void torsh_validation_text(const struct validation *validation);

/* Print it as JSON: tools/schema/briefs/validate.json. */
void torsh_validation_json(const struct validation *validation);

/* Free it. */
void torsh_validation_free(struct validation *validation);

#endif
