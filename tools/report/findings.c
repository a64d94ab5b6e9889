/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/findings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/findings_json.h"
#include "tools/base/size.h"
#include "tools/report/text.h"

/* Saturates: a sum may exceed UINT64_MAX. */
static uint64_t whole(double value)
{
	return value < 0x1p63 ? (uint64_t)fmax(value, 0) : UINT64_C(1) << 63;
}

static void print_value(const struct evidence *evidence)
{
	char text[SIZE_TEXT_BYTES];

	if (strcmp(evidence->unit, "ns") == 0)
		printf("%s %s", evidence->name, torsh_size_duration(whole(evidence->value), text));
	else if (strcmp(evidence->unit, "bytes") == 0)
		printf("%s %s", evidence->name, torsh_size_human(whole(evidence->value), text));
	else
		printf("%s %.6g %s", evidence->name, evidence->value, evidence->unit);
}

static void print_limit(const struct limit_words *limit)
{
	char text[SIZE_TEXT_BYTES];

	if (strcmp(limit->unit, "ns") == 0)
		printf(" (%s %s)", torsh_side_names[limit->side],
		       torsh_size_duration(whole(limit->value), text));
	else if (strcmp(limit->unit, "bytes") == 0)
		printf(" (%s %s)", torsh_side_names[limit->side],
		       torsh_size_human(whole(limit->value), text));
	else
		printf(" (%s %.6g)", torsh_side_names[limit->side], limit->value);
}

static void print_where(const struct finding *finding, struct symbols *symbols)
{
	const char *kernel = torsh_finding_kernel(finding, symbols), *separator = "      ";
	char *line = torsh_finding_line(finding, symbols);

	if (kernel) {
		fputs(separator, stdout);
		torsh_text_function(stdout, kernel);
		separator = ", ";
	}
	if (finding->api) {
		printf("%s%s", separator, finding->api);
		separator = ", ";
	}
	if (finding->operator_name) {
		printf("%sin %s", separator, finding->operator_name);
		separator = ", ";
	}
	if (finding->has_device) {
		printf("%sdevice %" PRIu32, separator, finding->device);
		separator = ", ";
	}
	printf("%spid %" PRIu32, separator, finding->process->pid);
	printf(line ? ", %s\n" : "\n", line);
	free(line);
}

static void print_gain(const struct finding *finding, size_t i)
{
	char ns[SIZE_TEXT_BYTES], bytes[SIZE_TEXT_BYTES];

	fputs("      gains ", stdout);
	if (finding->no_gain)
		printf("what is not known, as %s", finding->no_gain);
	else if (isnan(finding->gain_ns))
		printf("at most %s", torsh_size_human(whole(finding->gain_bytes), bytes));
	else
		printf("at most %s", torsh_size_duration(whole(finding->gain_ns), ns));
	printf("; --open %zu shows it\n", i + 1);
}

static void print_finding(const struct finding *finding, size_t i, struct symbols *symbols,
			  size_t n_more)
{
	const struct rule_words *rule = &torsh_rules[finding->rule];
	char share[SIZE_TEXT_BYTES];

	printf("  %s, %s", torsh_severity_names[finding->severity], rule->name);
	if (!isnan(finding->share_pct))
		printf(", %s of %s", torsh_size_percent(finding->share_pct, 100, share),
		       finding->share_of);
	printf(": %s\n", rule->description);
	print_where(finding, symbols);
	fputs("      ", stdout);
	for (size_t i = 0; i < finding->n_evidence; i++) {
		fputs(i ? ", " : "", stdout);
		print_value(&finding->evidence[i]);
		if (finding->evidence[i].limit)
			print_limit(finding->evidence[i].limit);
	}
	putchar('\n');
	if (torsh_analysis_kind_names[rule->kind])
		print_gain(finding, i);
	if (finding->note)
		printf("      %s\n", finding->note);
	printf("      %s\n", rule->suggestion);
	if (n_more)
		printf("      and %zu more of this rule\n", n_more);
}

static size_t count_rules(const struct analysis *analysis, enum rule_state state)
{
	size_t n = 0;

	for (int i = 0; i < N_RULES; i++)
		n += analysis->rules[i].state == state;
	return n;
}

static bool is_first_with_reason(const struct analysis *analysis, int rule)
{
	for (int i = 0; i < rule; i++) {
		if (analysis->rules[i].state == RULE_NOT_EVALUATED &&
		    strcmp(analysis->rules[i].reason, analysis->rules[rule].reason) == 0)
			return false;
	}
	return true;
}

/* Prints one line per reason. */
static void print_not_judged(const struct analysis *analysis)
{
	for (int i = 0; i < N_RULES; i++) {
		const char *reason = analysis->rules[i].reason, *separator = "";

		if (analysis->rules[i].state != RULE_NOT_EVALUATED ||
		    !is_first_with_reason(analysis, i))
			continue;
		printf("  not judged, as %s: ", reason);
		for (int k = i; k < N_RULES; k++) {
			if (analysis->rules[k].state != RULE_NOT_EVALUATED ||
			    strcmp(analysis->rules[k].reason, reason) != 0)
				continue;
			printf("%s%s", separator, torsh_rules[k].name);
			separator = ", ";
		}
		putchar('\n');
	}
}

void torsh_findings_text(const struct analysis *analysis, struct symbols *symbols, size_t limit)
{
	bool is_shown[N_RULES] = {false};
	size_t n_fired = count_rules(analysis, RULE_FIRED), n_shown = 0;
	char text[SIZE_TEXT_BYTES];

	if (!analysis->has_anything)
		return;
	putchar('\n');
	torsh_text_heading(stdout, "Inefficiencies: %zu of %d rules found something, %zu did not",
			   n_fired, N_RULES, count_rules(analysis, RULE_CLEAR));
	for (size_t i = 0; i < analysis->n && n_shown < limit; i++) {
		const struct finding *finding = &analysis->findings[i];

		if (is_shown[finding->rule])
			continue;
		is_shown[finding->rule] = true;
		n_shown++;
		print_finding(finding, i, symbols, analysis->rules[finding->rule].n_findings - 1);
	}
	if (n_fired > n_shown)
		printf("  ... and %s (--json has all)\n",
		       torsh_size_counted(n_fired - n_shown, "more rule", text));
	print_not_judged(analysis);
}
