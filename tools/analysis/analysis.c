/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Evaluates all rules for each process, and sorts the findings. */
#include "tools/analysis/analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/rules.h"
#include "tools/base/containers/array.h"

/* ---- tables ---------------------------------------------------------------------------------- */

const struct rule_words torsh_rules[N_RULES] = {
#define RULE(NAME, text, KIND, floor, found, command, about, advice) \
	[RULE_##NAME] = {.name = #text,                              \
			 .sentence = found,                          \
			 .next = command,                            \
			 .description = about,                       \
			 .suggestion = advice,                       \
			 .kind = KIND_##KIND,                        \
			 .floor_pct = floor},
#define LIMIT(...)
#include "tools/analysis/rules.def"
#undef RULE
#undef LIMIT
};

const struct limit_words torsh_limits[N_LIMITS] = {
#define RULE(...)
#define LIMIT(RULE, NAME, text, SIDE, number, of)       \
	[LIMIT_##RULE##_##NAME] = {.rule = RULE_##RULE, \
				   .name = #text,       \
				   .unit = of,          \
				   .side = SIDE_##SIDE, \
				   .value = number},
#include "tools/analysis/rules.def"
#undef RULE
#undef LIMIT
};

static void (*const judges[N_RULES])(struct evaluation *) = {
#define RULE(NAME, name, ...) [RULE_##NAME] = torsh_rule_evaluate_##name,
#define LIMIT(...)
#include "tools/analysis/rules.def"
#undef RULE
#undef LIMIT
};

const char *const torsh_analysis_kind_names[N_ANALYSIS_KINDS] = {
#define KIND(NAME, name) name,
	ANALYSIS_KINDS
#undef KIND
};

const char *const torsh_severity_names[] = {"Low", "Medium", "High", "Critical"};
const char *const torsh_side_names[] = {"below", "above", "at most", "at least"};
const char *const torsh_rule_state_names[] = {"not_judged", "clear", "fired"};

bool torsh_limit_passed(enum limit limit, double value)
{
	double bound = torsh_limits[limit].value;

	switch (torsh_limits[limit].side) {
	case SIDE_BELOW:
		return value < bound;
	case SIDE_ABOVE:
		return value > bound;
	case SIDE_AT_MOST:
		return value <= bound;
	default:
		return value >= bound;
	}
}

enum severity torsh_severity_of(double share_pct)
{
	static const double below_pct[] = {
		[SEVERITY_LOW] = 2, [SEVERITY_MEDIUM] = 10, [SEVERITY_HIGH] = 30};
	enum severity severity = SEVERITY_LOW;

	while (severity < SEVERITY_CRITICAL && share_pct >= below_pct[severity])
		severity++;
	return severity;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

double torsh_run_seconds(const struct metrics_process *of)
{
	const struct recorded_process *process = of->process;
	uint64_t end_ns = process->has_end_ns ? process->end_ns : of->of->last_ns;

	return end_ns > process->start_ns ? (double)(end_ns - process->start_ns) / 1e9 : 0;
}

bool torsh_rule_can_evaluate(struct evaluation *evaluation, const char *reason)
{
	if (!reason)
		evaluation->is_evaluated = true;
	else if (!evaluation->reason)
		evaluation->reason = reason;
	return !reason;
}

struct finding *torsh_rule_fire(struct evaluation *evaluation, double share_pct)
{
	struct analysis *analysis = evaluation->analysis;
	struct finding *finding;

	analysis->findings = torsh_array_reserve(analysis->findings, analysis->n, &analysis->n_room,
						 sizeof(*analysis->findings));
	finding = &analysis->findings[analysis->n++];
	*finding = (struct finding){
		.rule = evaluation->rule,
		.severity = torsh_severity_of(isnan(share_pct) ? 0 : share_pct),
		.share_pct = share_pct,
		.share_of = evaluation->share_of,
		.process = evaluation->of->process,
		.gain_ns = NAN,
		.gain_bytes = NAN,
	};
	return finding;
}

static void add_evidence(struct finding *finding, const struct evidence *evidence)
{
	if (finding->n_evidence < EVIDENCE_MAX)
		finding->evidence[finding->n_evidence++] = *evidence;
}

void torsh_finding_limit(struct finding *finding, enum limit limit, double value)
{
	const struct limit_words *words = &torsh_limits[limit];

	add_evidence(finding, &(struct evidence){.name = words->name,
						 .unit = words->unit,
						 .value = value,
						 .limit = words});
}

void torsh_finding_add(struct finding *finding, const char *name, const char *unit, double value)
{
	add_evidence(finding, &(struct evidence){.name = name, .unit = unit, .value = value});
}

void torsh_finding_gains_ns(struct finding *finding, double ns)
{
	finding->gain_ns = ns;
}

void torsh_finding_gains_bytes(struct finding *finding, double bytes)
{
	finding->gain_bytes = bytes;
}

void torsh_finding_gains_nothing(struct finding *finding, const char *reason)
{
	finding->no_gain = reason;
}

void torsh_finding_show(struct finding *finding, uint64_t from_ns, uint64_t ns)
{
	finding->from_ns = from_ns;
	finding->until_ns = ns ? from_ns + ns : 0;
}

double torsh_percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

bool torsh_rule_is_of_host(enum rule rule)
{
	return rule >= RULE_STEP_WAITS && rule <= RULE_COPIED_AFTER_FORK;
}

const char *torsh_scope_name(const struct time_scope *scope)
{
	return scope->is_of_steps ? "the steps" : "the run";
}

const char *torsh_no_device_work(const struct metrics_process *of)
{
	const char *reason =
		of->has_mode ? torsh_timeline_label(of->process, of->mode.reason) : NULL;

	for (size_t i = 0; i < of->n_devices; i++) {
		if (of->devices[i].work_ns)
			return NULL;
	}
	if (of->n_devices)
		return "devices did nothing that was launched in the analysed time";
	if (of->has_mode && of->mode.mode == DEVICE_HOST_ONLY)
		return reason ? reason : "devices were not measured";
	return of->has_mode ? "devices did nothing that was recorded" : "no device was used";
}

const char *torsh_no_device_calls(const struct metrics_process *of)
{
	if (!of->has_mode)
		return "no device was used";
	return of->mode.mode == DEVICE_BY_CUPTI ? NULL : "such calls are seen with CUPTI only";
}

double torsh_work_share(const struct metrics_process *of, const struct metrics_work *work)
{
	for (size_t i = 0; i < of->n_devices; i++) {
		const struct metrics_device *device = &of->devices[i];

		if (device->number == work->key.device && device->work_ns)
			return torsh_percent((double)work->total_ns / (double)device->work_ns *
						     (double)device->busy_ns,
					     (double)of->scope.ns);
	}
	return 0;
}

double torsh_host_share(const struct metrics_process *of, enum host_kind kind, bool is_steady)
{
	const struct time_scope *scope = &of->scope;
	uint64_t ns = 0;
	size_t next = 0;

	for (size_t i = is_steady ? scope->first_steady : 0;
	     i < (is_steady ? scope->n_whole : scope->n); i++)
		ns += torsh_busy_within(&of->host[kind].busy, scope->intervals[i].start_ns,
					scope->intervals[i].end_ns, &next);
	return torsh_percent((double)ns, (double)(is_steady ? scope->steady_ns : scope->ns));
}

/* ---- together -------------------------------------------------------------------------------- */

static bool uses_devices(const struct metrics_process *of)
{
	return of->has_mode || of->n_devices;
}

static bool some_uses_devices(const struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->n; i++) {
		if (uses_devices(&metrics->processes[i]))
			return true;
	}
	return false;
}

/* Drop the findings if their sum is below the rule's floor. */
static void apply_floor(struct evaluation *evaluation)
{
	struct analysis *analysis = evaluation->analysis;
	double share_pct = 0;

	for (size_t i = evaluation->first; i < analysis->n; i++)
		share_pct += analysis->findings[i].share_pct;
	/* Shares that are NAN have no floor. */
	if (analysis->n == evaluation->first ||
	    !(share_pct < torsh_rules[evaluation->rule].floor_pct))
		return;
	analysis->n = evaluation->first;
	evaluation->reason = "what it found comes to less than its floor";
}

/* Returns the time that a share is a share of; 0: it is one of something else. */
static double shared_ns(const struct evaluation *evaluation, const char *share_of)
{
	const struct time_scope *scope = &evaluation->of->scope;

	if (!share_of)
		return 0;
	if (strcmp(share_of, STEADY_STEPS) == 0)
		return (double)scope->steady_ns;
	if (strcmp(share_of, torsh_scope_name(scope)) == 0)
		return (double)scope->ns;
	return strcmp(share_of, "the run") == 0 ? torsh_run_seconds(evaluation->of) * 1e9 : 0;
}

/* What has a share of time, and no gain of its own, gains that time at most. */
static void settle_gains(const struct evaluation *evaluation)
{
	for (size_t i = evaluation->first; i < evaluation->analysis->n; i++) {
		struct finding *finding = &evaluation->analysis->findings[i];
		double ns = shared_ns(evaluation, finding->share_of) * finding->share_pct / 100;

		if (torsh_rules[finding->rule].kind == KIND_RECORDING)
			finding->no_gain = "it is about the recording, not the program";
		else if (isnan(finding->gain_ns) && isnan(finding->gain_bytes) &&
			 !finding->no_gain && ns > 0)
			finding->gain_ns = ns;
		if (isnan(finding->gain_ns) && isnan(finding->gain_bytes) && !finding->no_gain)
			finding->no_gain = "the time that it costs was not measured";
	}
}

/*
 * is_beside: the process uses no devices, and others do: rules that can't be evaluated for it are
 * not reported.
 */
static void evaluate(struct evaluation *evaluation, bool is_beside)
{
	struct rule_result *result = &evaluation->analysis->rules[evaluation->rule];
	size_t n;

	judges[evaluation->rule](evaluation);
	apply_floor(evaluation);
	settle_gains(evaluation);
	n = evaluation->analysis->n - evaluation->first;
	result->n_findings += n;
	if (n)
		result->state = RULE_FIRED;
	else if (evaluation->is_evaluated && result->state == RULE_NOT_EVALUATED)
		result->state = RULE_CLEAR;
	if (!result->reason && !is_beside)
		result->reason = evaluation->reason;
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_in_rule(const struct finding *x, const struct finding *y)
{
	int rc = compare_texts(x->kernel, y->kernel);

	rc = rc ? rc : compare_texts(x->operator_name, y->operator_name);
	rc = rc ? rc : compare_texts(x->api, y->api);
	rc = rc ? rc
		: (x->process->number > y->process->number) -
			     (x->process->number < y->process->number);
	rc = rc ? rc : (x->device > y->device) - (x->device < y->device);
	return rc ? rc : (x->stack > y->stack) - (x->stack < y->stack);
}

static double rank(const struct finding *finding)
{
	return isnan(finding->share_pct) ? 0 : finding->share_pct;
}

static int compare_findings(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (rank(x) != rank(y))
		return rank(x) < rank(y) ? 1 : -1;
	if (x->rule != y->rule)
		return x->rule > y->rule ? 1 : -1;
	return compare_in_rule(x, y);
}

/* Keep the worst findings of each rule. */
static void keep_worst(struct analysis *analysis)
{
	size_t kept[N_RULES] = {0}, n = 0;

	if (analysis->n)
		qsort(analysis->findings, analysis->n, sizeof(*analysis->findings),
		      compare_findings);
	for (size_t i = 0; i < analysis->n; i++) {
		if (kept[analysis->findings[i].rule]++ < FINDINGS_A_RULE)
			analysis->findings[n++] = analysis->findings[i];
	}
	analysis->n = n;
}

void torsh_analysis_make(struct analysis *analysis, const struct analysis_request *request)
{
	struct metrics *metrics = torsh_metrics_collect(request);
	bool has_devices = some_uses_devices(metrics);

	*analysis = (struct analysis){.metrics = metrics};
	for (int rule = 0; rule < N_RULES; rule++) {
		for (size_t i = 0; i < metrics->n; i++) {
			struct evaluation evaluation = {
				.analysis = analysis,
				.rule = (enum rule)rule,
				.metrics = metrics,
				.of = &metrics->processes[i],
				.first = analysis->n,
				.share_of = torsh_scope_name(&metrics->processes[i].scope)};

			evaluate(&evaluation, has_devices && !uses_devices(evaluation.of));
			analysis->has_anything = analysis->has_anything || has_devices ||
						 evaluation.of->of->n_operators;
		}
	}
	analysis->has_anything = analysis->has_anything || analysis->n;
	keep_worst(analysis);
}

void torsh_analysis_free(struct analysis *analysis)
{
	torsh_metrics_free(analysis->metrics);
	free(analysis->findings);
	*analysis = (struct analysis){0};
}
