/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/findings_json.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/frames/short_name.h"
#include "tools/report/screen/screen_line.h"

#define FINDINGS_SHOWN 4u
#define ROWS_A_FINDING 4u
#define ROWS_AROUND 4u /* the heading, and what is left out */
#define VALUES_SHOWN 2u

/* Of a sum that may be beyond all numbers. */
static uint64_t whole(double value)
{
	return value < 0x1p63 ? (uint64_t)fmax(value, 0) : UINT64_C(1) << 63;
}

/* The name without its unit, as words: "waited" of "waited_ns". The caller frees it. */
static char *words_of(const char *name)
{
	static const char *const units[] = {"_ns", "_pct", "_bytes"};
	char *words = torsh_need_text("%s", name);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t n = strlen(words), n_unit = strlen(units[i]);

		if (n > n_unit && strcmp(words + n - n_unit, units[i]) == 0)
			words[n - n_unit] = '\0';
	}
	for (char *at = words; *at; at++)
		*at = *at == '_' ? ' ' : *at;
	return words;
}

/* "waited 372 ms", "busy 1.1%", "waves per sm 0.5", "12 calls". The caller frees it. */
static char *value_text(const struct evidence *evidence)
{
	char *words = words_of(evidence->name), *text, number[SIZE_TEXT_BYTES];

	if (strcmp(evidence->unit, "ns") == 0)
		text = torsh_need_text("%s %s", words,
				       torsh_size_duration(whole(evidence->value), number));
	else if (strcmp(evidence->unit, "bytes") == 0)
		text = torsh_need_text("%s %s", words,
				       torsh_size_human(whole(evidence->value), number));
	else if (strncmp(evidence->unit, "percent", 7) == 0)
		text = torsh_need_text("%s %.1f%%", words, evidence->value);
	else if (strncmp(evidence->unit, words, strlen(words)) == 0)
		text = torsh_need_text("%.4g %s", evidence->value, evidence->unit);
	else
		text = torsh_need_text("%s %.4g", words, evidence->value);
	free(words);
	return text;
}

/* What is more than nothing, and neither the share nor an earlier value shows already. */
static bool is_shown(const struct finding *finding, size_t i)
{
	const struct evidence *evidence = &finding->evidence[i];
	bool is_share = strncmp(evidence->unit, "percent", 7) == 0 && !isnan(finding->share_pct) &&
			fabs(evidence->value - finding->share_pct) < 0.05;

	for (size_t k = 0; k < i; k++) {
		if (finding->evidence[k].value == evidence->value &&
		    strcmp(finding->evidence[k].unit, evidence->unit) == 0)
			return false;
	}
	return !is_share && (evidence->value > 0 || evidence->limit);
}

/* The share, then the values that passed a limit, then others. The caller frees it. */
static char *numbers_text(const struct finding *finding)
{
	char *text = NULL, *value;
	size_t n = 0;

	if (!isnan(finding->share_pct))
		text = torsh_need_text("%.1f%% of %s", finding->share_pct, finding->share_of);
	for (int with_limit = 1; with_limit >= 0; with_limit--) {
		for (size_t i = 0; i < finding->n_evidence && n < VALUES_SHOWN; i++) {
			const struct evidence *evidence = &finding->evidence[i];

			if ((evidence->limit != NULL) != with_limit || !is_shown(finding, i))
				continue;
			value = value_text(evidence);
			text = torsh_screen_append(text, "%s", value);
			free(value);
			n++;
		}
	}
	return text;
}

/* "aten::mm, train.py:30": what it is about. The caller frees it. */
static char *where_text(const struct finding *finding, struct symbols *symbols)
{
	const char *kernel = torsh_finding_kernel(finding, symbols);
	char *line = torsh_finding_line(finding, symbols), *where = NULL, *name;

	if (kernel) {
		name = torsh_short_function(kernel);
		where = torsh_screen_append(where, "%s", name);
		free(name);
	}
	if (finding->api)
		where = torsh_screen_append(where, "%s", finding->api);
	if (finding->operator_name)
		where = torsh_screen_append(where, "%s", finding->operator_name);
	if (line)
		where = torsh_screen_append(where, "%s", line);
	free(line);
	return where;
}

/* The command that shows more about it; NULL: none does. */
static const char *command_of(const struct finding *finding)
{
	enum analysis_kind kind = torsh_rules[finding->rule].kind;

	if (kind == KIND_RECORDING)
		return NULL;
	if (kind == KIND_MEMORY_WASTE || kind == KIND_LARGE_ALLOCATION ||
	    kind == KIND_FREQUENT_ALLOCATION)
		return "torsh peak";
	if (finding->kernel || finding->api || finding->has_device)
		return "torsh kernels";
	return finding->operator_name ? "torsh ops" : "torsh steps";
}

static void print_finding(const struct finding *finding, struct symbols *symbols, size_t n_more)
{
	bool is_bad = finding->severity >= SEVERITY_HIGH;
	const struct rule_words *rule = &torsh_rules[finding->rule];
	size_t n = strlen(rule->description);
	char *numbers = numbers_text(finding), *where = where_text(finding, symbols);
	char more[SIZE_TEXT_BYTES];
	const char *command = command_of(finding);

	if (n_more)
		where = torsh_screen_append(where, "and %s like it",
					    torsh_size_counted(n_more, "more finding", more));
	n -= n && rule->description[n - 1] == '.';
	torsh_screen_line(is_bad ? STYLE_BAD : STYLE_WARNING, 2, "%s %.*s: %s%s%s%s",
			  is_bad ? "!!" : " !", (int)n, rule->description, numbers ? numbers : "",
			  where ? " (" : "", where ? where : "", where ? ")" : "");
	torsh_screen_line(STYLE_PLAIN, 2, "   %s%s%s", torsh_finding_suggestion(finding),
			  command ? "  See: " : "", command ? command : "");
	free(numbers);
	free(where);
}

/* The reason that most of the rules without a decision have; *n is their number. */
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
		torsh_screen_line(STYLE_DIM, 1, "   not possible (-v): %zu, of these %zu as %s",
				  n, n_alike, reason);
}

void torsh_screen_findings(const struct analysis *analysis, struct symbols *symbols, size_t n_rows)
{
	bool is_shown_already[N_RULES] = {false};
	size_t n_fired = 0, n_clear = 0, n_shown = 0,
	       n_most = n_rows > ROWS_AROUND ? (n_rows - ROWS_AROUND) / ROWS_A_FINDING : 0;
	char text[SIZE_TEXT_BYTES];

	if (!analysis->has_anything)
		return;
	for (int i = 0; i < N_RULES; i++) {
		n_fired += analysis->rules[i].state == RULE_FIRED;
		n_clear += analysis->rules[i].state == RULE_CLEAR;
	}
	torsh_screen_section("FINDINGS", "%zu of %s found something, %zu found nothing", n_fired,
			     torsh_size_counted(N_RULES, "check", text), n_clear);
	n_most = n_most < 1 ? 1 : n_most > FINDINGS_SHOWN ? FINDINGS_SHOWN : n_most;
	for (size_t i = 0; i < analysis->n && n_shown < n_most; i++) {
		const struct finding *finding = &analysis->findings[i];

		if (is_shown_already[finding->rule])
			continue;
		is_shown_already[finding->rule] = true;
		n_shown++;
		print_finding(finding, symbols, analysis->rules[finding->rule].n_findings - 1);
	}
	if (n_fired > n_shown)
		torsh_screen_line(STYLE_DIM, 1, "   and %s (-v)",
				  torsh_size_counted(n_fired - n_shown, "more finding", text));
	print_not_judged(analysis);
}
