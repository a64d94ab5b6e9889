/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a brief proposes: found, ranked and put into words. */
#include "tools/report/brief/brief.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/findings_json.h"
#include "tools/analysis/sentence.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/short_name.h"
#include "tools/memory/leaks/block_classes.h"

#define MEMORY_PCT_MIN 0.1 /* of the peak: less is not worth a change */
#define LEAKED "what leaked"
#define GREW "what grew"

/* Returns true if a share of it is a share of the time that a user waits for. */
static bool is_time(const char *share_of)
{
	return share_of && (strstr(share_of, "steps") || strcmp(share_of, "the run") == 0);
}

static void add(struct brief *brief, const struct brief_hypothesis *hypothesis)
{
	struct brief_hypothesis *added;
	double gain_pct = hypothesis->gain_pct;

	if (brief->n_hypotheses == BRIEF_HYPOTHESES)
		return;
	added = &brief->hypotheses[brief->n_hypotheses++];
	*added = *hypothesis;
	added->speedup =
		is_time(hypothesis->share_of) && gain_pct < 100 ? 100 / (100 - gain_pct) : NAN;
}

static bool has_rule(const struct brief *brief, enum rule rule)
{
	for (size_t i = 0; i < brief->n_hypotheses; i++) {
		if (brief->hypotheses[i].finding && brief->hypotheses[i].finding->rule == rule)
			return true;
	}
	return false;
}

/* What becomes less if the cause of a finding goes away. */
static enum brief_figure figure_of(const struct brief *brief, const struct finding *finding)
{
	const struct metrics_process *of =
		torsh_overview_metrics(brief->overview, finding->process);

	if (finding->share_of && strstr(finding->share_of, "steps"))
		return FIGURE_STEP_TIME;
	if (finding->share_of && strcmp(finding->share_of, "the run") == 0)
		return FIGURE_RUN_TIME;
	if (finding->share_of)
		return N_FIGURES; /* of a device's memory, or what is resident */
	return of && of->scope.is_of_steps ? FIGURE_STEP_TIME : FIGURE_RUN_TIME;
}

/* Lost time without its cause, which other hypotheses name. */
static bool is_symptom(const struct brief_hypothesis *hypothesis)
{
	return hypothesis->finding && (hypothesis->finding->rule == RULE_DEVICE_UNDERUSED ||
				       hypothesis->finding->rule == RULE_DEVICE_GAP);
}

/*
 * The findings of time come first, by their gain; those of memory and of unknown gain follow, and
 * symptoms.
 */
static int compare(const void *a, const void *b)
{
	const struct brief_hypothesis *x = a, *y = b;
	bool x_is_time = !isnan(x->speedup), y_is_time = !isnan(y->speedup);

	if (is_symptom(x) != is_symptom(y))
		return is_symptom(x) - is_symptom(y);

	if (x_is_time != y_is_time)
		return x_is_time ? -1 : 1;
	if (isnan(x->gain_pct) || isnan(y->gain_pct))
		return isnan(x->gain_pct) - isnan(y->gain_pct);
	return (x->gain_pct < y->gain_pct) - (x->gain_pct > y->gain_pct);
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : NAN;
}

static bool is_large(const struct brief *brief, const struct allocation_site *site)
{
	double peak = (double)brief->overview->highest.bytes;

	return percent((double)site->bytes, peak) >= MEMORY_PCT_MIN;
}

const struct allocation_site *torsh_brief_lost(const struct brief *brief)
{
	const struct overview *overview = brief->overview;
	const struct allocation_site *site = overview->leaks.found.items;

	if (!overview->n_leaks || !site->blocks || torsh_block_class_of(site) == BLOCKS_REACHABLE ||
	    !is_large(brief, site))
		return NULL;
	return site;
}

static void add_memory(struct brief *brief)
{
	const struct leaks *leaks = &brief->overview->leaks;
	const struct allocation_site *lost = torsh_brief_lost(brief);
	struct brief_hypothesis leak = {.figure = FIGURE_LEAKED, .share_of = LEAKED},
				growth = {.figure = FIGURE_GROWTH, .share_of = GREW};

	if (lost) {
		leak.site = lost;
		leak.gain_pct = percent((double)leak.site->bytes, (double)leaks->bytes);
		add(brief, &leak);
	}
	if (brief->growth.found.n && is_large(brief, brief->growth.found.items)) {
		growth.site = brief->growth.found.items;
		growth.gain_pct = percent(torsh_growth_rate(growth.site).bytes,
					  torsh_growth_bytes(&brief->growth));
		add(brief, &growth);
	}
}

/* The worst finding of each rule about the program. */
static void add_findings(struct brief *brief)
{
	const struct analysis *analysis = &brief->overview->analysis;

	for (size_t i = 0; i < analysis->n; i++) {
		const struct finding *finding = &analysis->findings[i];
		const struct brief_hypothesis hypothesis = {
			.finding = finding,
			.figure = figure_of(brief, finding),
			.gain_pct = finding->share_pct,
			.share_of = finding->share_of,
		};

		if (!torsh_analysis_kind_names[torsh_rules[finding->rule].kind] ||
		    torsh_finding_is_remark(finding) || has_rule(brief, finding->rule))
			continue;
		add(brief, &hypothesis);
	}
}

static void add_suspects(struct brief *brief)
{
	for (enum suspect_kind kind = 0; kind < N_SUSPECTS; kind++) {
		const struct suspect *suspect = &brief->suspects.items[kind];
		bool is_of_steps = suspect->share_of && strstr(suspect->share_of, "steps");
		struct brief_hypothesis hypothesis = {
			.suspect = suspect,
			.figure = is_of_steps ? FIGURE_STEP_TIME : FIGURE_RUN_TIME,
			.gain_pct = suspect->gain_pct,
			.share_of = suspect->share_of,
		};

		if (kind == SUSPECT_UNUSED_GRAPH)
			hypothesis.figure = FIGURE_PEAK;
		if (suspect->is_found)
			add(brief, &hypothesis);
	}
}

void torsh_brief_find_hypotheses(struct brief *brief)
{
	add_memory(brief);
	add_findings(brief);
	add_suspects(brief);
	qsort(brief->hypotheses, brief->n_hypotheses, sizeof(*brief->hypotheses), compare);
}

enum rule_state torsh_brief_suspect_state(const struct brief *brief, enum suspect_kind kind)
{
	const struct suspect *suspect = &brief->suspects.items[kind];

	if (suspect->reason)
		return RULE_NOT_EVALUATED;
	return suspect->is_found ? RULE_FIRED : RULE_CLEAR;
}

/* ---- in words -------------------------------------------------------------------------------- */

static bool is_growth(const struct brief_hypothesis *hypothesis)
{
	return hypothesis->site && hypothesis->figure == FIGURE_GROWTH;
}

const char *torsh_brief_rule(const struct brief_hypothesis *hypothesis)
{
	if (hypothesis->finding)
		return torsh_rules[hypothesis->finding->rule].name;
	if (hypothesis->suspect)
		return torsh_suspects[hypothesis->suspect->kind].name;
	return is_growth(hypothesis) ? "growth" : "leak";
}

char *torsh_brief_sentence(const struct brief *brief, const struct brief_hypothesis *hypothesis)
{
	char bytes[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES];

	if (hypothesis->finding)
		return torsh_finding_sentence(hypothesis->finding, brief->overview->symbols);
	if (hypothesis->suspect)
		return torsh_suspect_sentence(hypothesis->suspect);
	torsh_size_counted(hypothesis->site->blocks, "block", blocks);
	if (is_growth(hypothesis))
		return torsh_need_text(
			"%s a %s more stay alive.",
			torsh_size_human(
				(uint64_t)(torsh_growth_rate(hypothesis->site).bytes + 0.5), bytes),
			brief->growth.over == GROWTH_OVER_STEPS ? "step" : "second");
	return torsh_need_text("%s in %s were not freed.",
			       torsh_size_human(hypothesis->site->bytes, bytes), blocks);
}

const char *torsh_brief_change(const struct brief_hypothesis *hypothesis)
{
	if (hypothesis->finding)
		return torsh_rules[hypothesis->finding->rule].suggestion;
	return hypothesis->suspect ? torsh_suspects[hypothesis->suspect->kind].change
				   : "Free it, drop what refers to it, or bound what keeps it.";
}

const char *torsh_brief_check(const struct brief_hypothesis *hypothesis)
{
	if (hypothesis->finding)
		return torsh_rules[hypothesis->finding->rule].next;
	return hypothesis->suspect ? torsh_suspects[hypothesis->suspect->kind].check
				   : "torsh leaks";
}

/* Without a stack: the line in whose calls of the operator most blocks come from. */
static char *finding_place(const struct brief *brief, const struct finding *finding)
{
	char *place = torsh_finding_place(finding, brief->overview->symbols);
	char *line = torsh_finding_line(finding, brief->overview->symbols), *text;
	const struct frame *frame = line || !finding->operator_name
					    ? NULL
					    : torsh_brief_caller(brief, finding->operator_name);

	free(line);
	if (!frame)
		return place;
	line = torsh_short_place(frame, torsh_working_directory());
	text = torsh_need_text("%s%s%s", place ? place : "", place ? ", " : "", line);
	free(place);
	free(line);
	return text;
}

/* The line of its stack, else the one in whose calls of these operators most blocks come from. */
static char *suspect_place(const struct brief *brief, const struct suspect *suspect)
{
	char *line = torsh_suspect_line(suspect, brief->overview->symbols), *text;
	const struct frame *frame = NULL;

	for (size_t i = 0; !line && !frame && i < suspect->n_operators; i++)
		frame = torsh_brief_caller(brief, suspect->operators[i]);
	if (frame)
		line = torsh_short_place(frame, torsh_working_directory());
	if (!line)
		return suspect->operator_name ? torsh_need(strdup(suspect->operator_name)) : NULL;
	text = torsh_need_text("%s%s%s", suspect->operator_name ? suspect->operator_name : "",
			       suspect->operator_name ? ", " : "", line);
	free(line);
	return text;
}

char *torsh_brief_place(const struct brief *brief, const struct brief_hypothesis *hypothesis)
{
	const struct allocation_site *site = hypothesis->site;
	const char *directory = torsh_working_directory();
	size_t where;

	if (hypothesis->finding)
		return finding_place(brief, hypothesis->finding);
	if (hypothesis->suspect)
		return suspect_place(brief, hypothesis->suspect);
	where = site->frames ? torsh_blamed_line(site->frames, site->n_frames, directory).where
			     : FRAME_NONE;
	return where == FRAME_NONE ? NULL : torsh_short_place(site->frames[where], directory);
}
