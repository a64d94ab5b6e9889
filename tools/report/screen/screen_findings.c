/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_findings.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analysis/sentence.h"
#include "tools/base/size.h"
#include "tools/report/screen/screen_line.h"

#define FINDINGS_SHOWN 4u
#define ROWS_A_FINDING 5u /* including the line of what is left out */

/* Returns the command that shows more of a finding than this one; NULL: none. */
static const char *command_of(const struct finding *finding)
{
	const char *command = torsh_rules[finding->rule].next;

	return command && strncmp(command, "torsh report", 12) != 0 ? command : NULL;
}

static void print_finding(const struct finding *finding, struct symbols *symbols, size_t n_more)
{
	bool is_bad = finding->severity >= SEVERITY_HIGH;
	char *sentence = torsh_finding_sentence(finding, symbols);
	char *where = torsh_finding_place(finding, symbols);
	const char *command = command_of(finding);
	char more[SIZE_TEXT_BYTES];

	if (n_more)
		where = torsh_screen_append(where, "%s like it",
					    torsh_size_counted(n_more, "more finding", more));
	torsh_screen_line(is_bad ? STYLE_BAD : STYLE_WARNING, 2, "%s %s%s%s%s",
			  is_bad ? "!!" : " !", sentence, where ? " (" : "", where ? where : "",
			  where ? ")" : "");
	torsh_screen_line(STYLE_PLAIN, 3, "   %s%s%s", torsh_rules[finding->rule].suggestion,
			  command ? "  See: " : "", command ? command : "");
	free(sentence);
	free(where);
}

/* Returns the most common reason of rules that were not evaluated; *n is the number of these. */
static const char *main_reason(const struct analysis *analysis, size_t *n)
{
	const char *reason = NULL;

	*n = 0;
	for (int i = 0; i < N_RULES; i++) {
		size_t n_alike = 0;

		if (analysis->rules[i].state != RULE_NOT_EVALUATED)
			continue;
		for (int k = 0; k < N_RULES; k++)
			n_alike +=
				analysis->rules[k].state == RULE_NOT_EVALUATED &&
				strcmp(analysis->rules[k].reason, analysis->rules[i].reason) == 0;
		if (n_alike > *n) {
			*n = n_alike;
			reason = analysis->rules[i].reason;
		}
	}
	return reason;
}

static void print_not_judged(const struct analysis *analysis)
{
	size_t n = 0, n_alike;
	const char *reason = main_reason(analysis, &n_alike);

	for (int i = 0; i < N_RULES; i++)
		n += analysis->rules[i].state == RULE_NOT_EVALUATED;
	if (n)
		torsh_screen_line(STYLE_DIM, 1, "   not possible (-v): %zu, of these %zu as %s", n,
				  n_alike, reason);
}

/* The worst remark about the recorder, NULL: there is none. */
static const struct finding *find_remark(const struct analysis *analysis)
{
	for (size_t i = 0; i < analysis->n; i++) {
		if (torsh_finding_is_remark(&analysis->findings[i]))
			return &analysis->findings[i];
	}
	return NULL;
}

/* Returns true if all that the rule found are remarks. */
static bool is_remark_alone(const struct analysis *analysis, enum rule rule)
{
	bool has_remark = false;

	for (size_t i = 0; i < analysis->n; i++) {
		if (analysis->findings[i].rule != rule)
			continue;
		if (!torsh_finding_is_remark(&analysis->findings[i]))
			return false;
		has_remark = true;
	}
	return has_remark;
}

/* Returns how many rules found something. */
static size_t print_counts(const struct analysis *analysis)
{
	size_t n_fired = 0, n_clear = 0;
	char text[SIZE_TEXT_BYTES];

	for (enum rule i = 0; i < N_RULES; i++) {
		n_fired += analysis->rules[i].state == RULE_FIRED && !is_remark_alone(analysis, i);
		n_clear += analysis->rules[i].state == RULE_CLEAR;
	}
	if (n_fired)
		torsh_screen_section("FINDINGS", "%zu of %s found something, %zu found nothing",
				     n_fired, torsh_size_counted(N_RULES, "check", text), n_clear);
	else
		torsh_screen_section("FINDINGS", "none: %s found nothing",
				     torsh_size_counted(n_clear, "check", text));
	return n_fired;
}

void torsh_screen_findings(const struct analysis *analysis, struct symbols *symbols,
			   size_t last_row)
{
	bool is_shown_already[N_RULES] = {false};
	size_t n_fired, n_shown = 0;
	char text[SIZE_TEXT_BYTES];

	if (!analysis->has_anything)
		return;
	n_fired = print_counts(analysis);
	for (size_t i = 0; i < analysis->n && n_shown < FINDINGS_SHOWN; i++) {
		const struct finding *finding = &analysis->findings[i];

		if (is_shown_already[finding->rule] || torsh_finding_is_remark(finding))
			continue;
		if (n_shown && torsh_screen_rows() + ROWS_A_FINDING > last_row)
			break;
		is_shown_already[finding->rule] = true;
		n_shown++;
		print_finding(finding, symbols, analysis->rules[finding->rule].n_findings - 1);
	}
	if (n_fired > n_shown)
		torsh_screen_line(STYLE_DIM, 1, "   and %s (-v)",
				  torsh_size_counted(n_fired - n_shown, "more finding", text));
	print_not_judged(analysis);
}

void torsh_screen_remark(const struct analysis *analysis, struct symbols *symbols)
{
	const struct finding *remark = find_remark(analysis);
	char *sentence;

	if (!remark)
		return;
	sentence = torsh_finding_sentence(remark, symbols);
	torsh_screen_line(STYLE_DIM, 1, "%s (-v)", sentence);
	free(sentence);
}
