/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/validate/validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

#define SMALLER 0.5 /* ours: of a cause, half of it is gone */

const char *const torsh_verdict_names[] = {
	[VERDICT_HELD] = "held",	 [VERDICT_IN_PART] = "held in part",
	[VERDICT_FAILED] = "failed",	 [VERDICT_NOT_TRIED] = "not tried",
	[VERDICT_UNKNOWN] = "not known",
};

const char *const torsh_cause_names[] = {
	[CAUSE_GONE] = "gone",
	[CAUSE_SMALLER] = "smaller",
	[CAUSE_THERE] = "there",
	[CAUSE_UNKNOWN] = "not known",
};

/* ---- a run ----------------------------------------------------------------------------------- */

/* What became of a rule or a suspect, of a leak or of growth; NOT_EVALUATED: also if unknown. */
static enum rule_state state_of(const struct brief *brief, const char *name)
{
	if (strcmp(name, "leak") == 0)
		return brief->overview->highest.is_known ? RULE_CLEAR : RULE_NOT_EVALUATED;
	if (strcmp(name, "growth") == 0)
		return brief->growth.is_enough ? RULE_CLEAR : RULE_NOT_EVALUATED;
	for (enum rule rule = 0; rule < N_RULES; rule++) {
		/* What is found, but no hypothesis, is too little to be one. */
		if (strcmp(name, torsh_rules[rule].name) == 0)
			return brief->overview->analysis.rules[rule].state == RULE_FIRED
				       ? RULE_CLEAR
				       : brief->overview->analysis.rules[rule].state;
	}
	for (enum suspect_kind kind = 0; kind < N_SUSPECTS; kind++) {
		if (strcmp(name, torsh_suspects[kind].name) == 0)
			return torsh_brief_suspect_state(brief, kind);
	}
	return RULE_NOT_EVALUATED;
}

static struct cause find_cause(const struct brief *brief, const char *name)
{
	for (size_t i = 0; i < brief->n_hypotheses; i++) {
		const struct brief_hypothesis *hypothesis = &brief->hypotheses[i];

		if (strcmp(torsh_brief_rule(hypothesis), name) == 0)
			return (struct cause){RULE_FIRED, hypothesis->gain_pct};
	}
	return (struct cause){state_of(brief, name), NAN};
}

void torsh_validation_begin(struct validation *validation, const struct claims *claims,
			    size_t n_before, size_t n_after)
{
	validation->claims = claims;
	validation->n_before = n_before;
	validation->n_after = n_after;
	validation->runs = torsh_need_items(NULL, 0, n_before + n_after, sizeof(*validation->runs));
	validation->verdicts = torsh_need_items(NULL, 0, claims->n, sizeof(*validation->verdicts));
	validation->rules.min_bytes = CHANGE_MIN_BYTES;
}

void torsh_validation_measure(struct validation *validation, const struct brief *brief,
			      const struct prepass *prepass)
{
	size_t number = validation->n_measured++;
	struct measured_run *run = &validation->runs[number];

	run->path = torsh_need(strdup(brief->overview->path));
	run->n_steps = torsh_brief_steady_steps(brief);
	for (enum brief_figure figure = 0; figure < N_FIGURES; figure++)
		run->has[figure] = torsh_brief_figure(brief, figure, &run->figures[figure]);
	run->causes = torsh_need_items(NULL, 0, validation->claims->n, sizeof(*run->causes));
	for (size_t i = 0; i < validation->claims->n; i++)
		run->causes[i] = find_cause(brief, validation->claims->items[i].rule);
	torsh_results_add(&validation->results, brief->overview->recording, prepass,
			  brief->overview->processes[0], number >= validation->n_before);
}

/* ---- judging --------------------------------------------------------------------------------- */

static enum brief_figure compared_figure(const struct validation *validation,
					 const struct claim *claim)
{
	if (claim->figure == FIGURE_STEP_TIME && validation->per == PER_RUN)
		return FIGURE_STEPS_TIME;
	return claim->figure;
}

static void judge_figure(struct validation *validation, enum brief_figure figure)
{
	size_t n = validation->n_before + validation->n_after;
	uint64_t *values = torsh_need_items(NULL, 0, n, sizeof(*values));
	bool is_known = true;

	for (size_t i = 0; i < n; i++) {
		values[i] = validation->runs[i].figures[figure];
		is_known = is_known && validation->runs[i].has[figure];
	}
	if (is_known)
		validation->figures[figure] =
			torsh_change_judge(values, validation->n_before, validation->n_after,
					   torsh_brief_figure_units[figure], &validation->rules, 0);
	free(values);
}

/* Only figures that claims are about are judged together. */
static size_t count_figures(const struct validation *validation)
{
	size_t n = 0;

	for (enum brief_figure figure = 0; figure < N_FIGURES; figure++) {
		bool is_claimed = false;

		for (size_t i = 0; i < validation->claims->n; i++)
			is_claimed = is_claimed ||
				     compared_figure(validation, &validation->claims->items[i]) ==
					     figure;
		n += is_claimed;
	}
	return n;
}

static bool has_equal_steps(const struct validation *validation)
{
	for (size_t i = 1; i < validation->n_before + validation->n_after; i++) {
		if (validation->runs[i].n_steps != validation->runs[0].n_steps)
			return false;
	}
	return true;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What a side's runs show of a cause. */
struct side {
	size_t n, n_there, n_unknown;
	double median_pct; /* over those where it is there and its size known; NAN: none */
};

static struct side look(const struct validation *validation, size_t claim, size_t first, size_t n)
{
	double *sizes = torsh_need_items(NULL, 0, n, sizeof(*sizes));
	struct side side = {.n = n, .median_pct = NAN};
	size_t n_sizes = 0;

	for (size_t i = first; i < first + n; i++) {
		const struct cause *cause = &validation->runs[i].causes[claim];

		side.n_unknown += cause->state == RULE_NOT_EVALUATED;
		side.n_there += cause->state == RULE_FIRED;
		if (cause->state == RULE_FIRED && !isnan(cause->gain_pct))
			sizes[n_sizes++] = cause->gain_pct;
	}
	if (n_sizes) {
		qsort(sizes, n_sizes, sizeof(*sizes), compare_doubles);
		side.median_pct = sizes[n_sizes / 2];
	}
	free(sizes);
	return side;
}

/* A share of a figure that became smaller may be as large as before, and yet be less. */
static enum cause_change compare_causes(const struct claim_verdict *verdict,
					const struct side *before, const struct side *after)
{
	const struct change *change = &verdict->change;
	double was, is;

	if (after->n_unknown)
		return CAUSE_UNKNOWN;
	if (2 * after->n_there < after->n || !after->n_there)
		return CAUSE_GONE;
	if (isnan(before->median_pct) || isnan(after->median_pct) || !change->is_known)
		return CAUSE_THERE;
	was = before->median_pct * (double)change->before;
	is = after->median_pct * (double)change->after;
	return is <= SMALLER * was ? CAUSE_SMALLER : CAUSE_THERE;
}

static void unknown(struct claim_verdict *verdict, const char *reason)
{
	verdict->verdict = VERDICT_UNKNOWN;
	verdict->reason = reason;
}

static void judge_seen(struct claim_verdict *verdict)
{
	const struct change *change = &verdict->change;
	double predicted_pct = verdict->claim->gain_pct;
	bool is_less = change->is_change && change->after < change->before;

	if (!is_less && change->is_change) {
		verdict->verdict = VERDICT_FAILED;
		verdict->reason = "it became more";
	} else if (!is_less && isnan(predicted_pct)) {
		unknown(verdict, "the cause is less; no gain was predicted, and none is seen");
	} else if (!is_less && VALIDATE_PART * predicted_pct / 100 * (double)change->before <=
				       (double)change->spread) {
		unknown(verdict, "what was predicted is within the spread: record more runs");
	} else if (!is_less) {
		verdict->verdict = VERDICT_FAILED;
		verdict->reason = "the cause is less, and the figure is not";
	} else if (isnan(predicted_pct) || verdict->seen_pct >= VALIDATE_PART * predicted_pct) {
		verdict->verdict = VERDICT_HELD;
	} else {
		verdict->verdict = VERDICT_IN_PART;
		verdict->reason = "less than half of what was predicted";
	}
}

static void judge_claim(struct validation *validation, size_t number)
{
	struct claim_verdict *verdict = &validation->verdicts[number];
	const struct claim *claim = &validation->claims->items[number];
	const struct side before = look(validation, number, 0, validation->n_before);
	const struct side after =
		look(validation, number, validation->n_before, validation->n_after);

	*verdict = (struct claim_verdict){.claim = claim, .seen_pct = NAN};
	verdict->figure = compared_figure(validation, claim);
	verdict->before_pct = before.median_pct;
	verdict->after_pct = after.median_pct;
	if (verdict->figure != N_FIGURES)
		verdict->change = validation->figures[verdict->figure];
	if (verdict->change.is_known && verdict->change.before)
		verdict->seen_pct = 0 - torsh_change_percent(&verdict->change);
	verdict->cause = compare_causes(verdict, &before, &after);
	if (verdict->figure == N_FIGURES)
		unknown(verdict, "no figure of these would show it");
	else if (verdict->cause == CAUSE_UNKNOWN)
		unknown(verdict, "whether its cause is there was not judged after the change");
	else if (!before.n_there)
		unknown(verdict, "the recordings before the change don't show its cause");
	else if (verdict->cause == CAUSE_THERE)
		verdict->verdict = VERDICT_NOT_TRIED;
	else if (!verdict->change.is_known)
		unknown(verdict, "not all runs have the figure");
	else if (verdict->figure == FIGURE_STEP_TIME && validation->per == PER_UNDECIDED &&
		 !has_equal_steps(validation))
		unknown(verdict,
			"the runs have different numbers of steps: --per step or --per run "
			"says what is compared");
	else
		judge_seen(verdict);
}

void torsh_validation_judge(struct validation *validation)
{
	validation->rules.n_figures = count_figures(validation);
	for (enum brief_figure figure = 0; figure < N_FIGURES; figure++)
		judge_figure(validation, figure);
	for (size_t i = 0; i < validation->claims->n; i++)
		judge_claim(validation, i);
	torsh_results_judge(&validation->results);
}

bool torsh_validation_holds(const struct validation *validation)
{
	size_t n_held = 0;

	for (size_t i = 0; i < validation->claims->n; i++) {
		enum verdict verdict = validation->verdicts[i].verdict;

		if (verdict == VERDICT_FAILED)
			return false;
		n_held += verdict == VERDICT_HELD || verdict == VERDICT_IN_PART;
	}
	return n_held && validation->results.verdict != RESULTS_DIFFERENT;
}

void torsh_validation_free(struct validation *validation)
{
	for (size_t i = 0; i < validation->n_measured; i++) {
		free(validation->runs[i].path);
		free(validation->runs[i].causes);
	}
	free(validation->runs);
	free(validation->verdicts);
	torsh_results_free(&validation->results);
}
