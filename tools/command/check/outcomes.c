/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/check/outcomes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/diff/measure_reading.h"

static const struct {
	const char *name, *text;
	enum change_unit unit;
} totals[] = {
#define TOTAL(name, unit, text) [COMPARE_##name] = {#name, text, CHANGE_##unit},
	COMPARE_TOTALS
#undef TOTAL
};

void torsh_outcomes_add(struct outcomes *outcomes, const char *name, bool is_kept, char *text)
{
	outcomes->items = torsh_array_reserve(outcomes->items, outcomes->n, &outcomes->n_room,
					      sizeof(*outcomes->items));
	outcomes->items[outcomes->n++] =
		(struct outcome){.name = name, .text = text, .is_kept = is_kept};
}

static const char *amount_text(uint64_t amount, enum change_unit unit, char *out)
{
	return unit == CHANGE_BYTES ? torsh_size_exact(amount, out)
	       : unit == CHANGE_NS  ? torsh_size_duration(amount, out)
				    : torsh_size_grouped(amount, out);
}

static void add_total(struct outcomes *outcomes, const struct growth_limits *limits,
		      const struct comparison *comparison, enum compare_total total)
{
	enum growth_verdict verdict = torsh_growth_verdict(limits, comparison, total);
	const struct change *change = &comparison->totals[total].change;
	char before[SIZE_TEXT_BYTES], after[SIZE_TEXT_BYTES];

	if (verdict == GROWTH_NOT_LIMITED)
		return;
	torsh_outcomes_add(
		outcomes, totals[total].name, verdict == GROWTH_WITHIN,
		verdict == GROWTH_UNKNOWN
			? torsh_need_text("%s: not known of both recordings", totals[total].text)
			: torsh_need_text("%s: %s, %s in the baseline", totals[total].text,
					  amount_text(change->after, totals[total].unit, after),
					  amount_text(change->before, totals[total].unit, before)));
	outcomes->items[outcomes->n - 1].is_of_baseline = true;
	outcomes->items[outcomes->n - 1].change = *change;
}

/* Rows are sorted: the first one that is new or worse is the largest. */
static void find_line(struct outcomes *outcomes, const struct comparison *comparison)
{
	const struct compare_rows *rows = &comparison->tables[COMPARE_SITES];

	for (size_t i = 0; i < rows->n && !outcomes->file; i++) {
		const struct frame *user = rows->items[i].places[COMPARE_AFTER].user;

		if (!user ||
		    (rows->items[i].status != STATUS_NEW && rows->items[i].status != STATUS_WORSE))
			continue;
		outcomes->file = torsh_need_text("%s", user->file);
		outcomes->line = user->line;
	}
}

void torsh_outcomes_compare(struct outcomes *outcomes, const struct growth_limits *limits,
			    const char *path, const struct reading *reading,
			    struct read_options *options)
{
	const struct change_rules rules = {.min_bytes = CHANGE_MIN_BYTES};
	struct read_options of_both = *options;
	struct comparison comparison;
	struct reading baseline;

	of_both.path = path;
	of_both.has_pid = false; /* another run has other pids */
	torsh_suppress_restart(&of_both.suppress);
	of_both.steps = (struct steps_choice){.last = UINT64_MAX};
	torsh_reading_open(&baseline, &of_both);
	torsh_comparison_begin(&comparison, 1, 1, &rules);
	torsh_measure_reading(&comparison, 0, &baseline, &of_both);
	torsh_measure_reading(&comparison, 1, reading, &of_both);
	torsh_comparison_finish(&comparison);
	for (enum compare_total total = 0; total < N_COMPARE_TOTALS; total++)
		add_total(outcomes, limits, &comparison, total);
	find_line(outcomes, &comparison);
	torsh_comparison_free(&comparison);
	/* The array, perhaps moved, is still the caller's. */
	options->suppress = of_both.suppress;
	of_both.suppress = (struct suppress){0};
	torsh_reading_close(&baseline, &of_both);
}

bool torsh_outcomes_are_kept(const struct outcomes *outcomes)
{
	for (size_t i = 0; i < outcomes->n; i++) {
		if (!outcomes->items[i].is_kept)
			return false;
	}
	return true;
}

void torsh_outcomes_emit(struct json_writer *json, const struct outcomes *outcomes)
{
	torsh_json_begin_array(json, "baseline");
	for (size_t i = 0; i < outcomes->n; i++) {
		const struct outcome *outcome = &outcomes->items[i];
		bool is_known = outcome->change.is_known;

		if (!outcome->is_of_baseline)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", outcome->name);
		torsh_json_put_known(json, "before", is_known, outcome->change.before);
		torsh_json_put_known(json, "after", is_known, outcome->change.after);
		torsh_json_put_bool(json, "passed", outcome->is_kept);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

void torsh_outcomes_print(const struct outcomes *outcomes)
{
	for (size_t i = 0; i < outcomes->n; i++) {
		const struct outcome *outcome = &outcomes->items[i];

		if (outcome->is_of_baseline)
			printf("%-6s %s%s\n", outcome->is_kept ? "ok" : "BROKEN", outcome->text,
			       outcome->is_kept ? "" : ", more than it may grow");
	}
}

/* GitHub's escapes: in a message of %, CR and LF, in a property also of : and ,. */
static void print_escaped(const char *text, bool is_property)
{
	for (; *text; text++) {
		if (strchr("%\r\n", *text) || (is_property && strchr(":,", *text)))
			printf("%%%02X", (unsigned char)*text);
		else
			putchar(*text);
	}
}

void torsh_outcomes_print_github(const struct outcomes *outcomes)
{
	for (size_t i = 0; i < outcomes->n; i++) {
		const struct outcome *outcome = &outcomes->items[i];

		if (outcome->is_kept)
			continue;
		fputs("::error ", stdout);
		if (outcomes->file) {
			fputs("file=", stdout);
			print_escaped(outcomes->file, true);
			printf(",line=%d,", outcomes->line);
		}
		fputs("title=torsh check::", stdout);
		print_escaped(outcome->text, false);
		putchar('\n');
	}
}

/* Characters that XML 1.0 can't represent become '?'. */
static void write_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '&' || *text == '<' || *text == '>' || *text == '"')
			fprintf(out, "&#%d;", *text);
		else
			fputc((unsigned char)*text < ' ' ? '?' : *text, out);
	}
}

void torsh_outcomes_write_junit(const struct outcomes *outcomes, const char *path)
{
	FILE *out = fopen(path, "w");
	size_t n_broken = 0;

	if (!out)
		torsh_die("%s: %s", path, strerror(errno));
	for (size_t i = 0; i < outcomes->n; i++)
		n_broken += !outcomes->items[i].is_kept;
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
		"<testsuite name=\"torsh check\" tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n",
		outcomes->n, n_broken);
	for (size_t i = 0; i < outcomes->n; i++) {
		const struct outcome *outcome = &outcomes->items[i];

		fprintf(out, "<testcase classname=\"torsh.check\" name=\"%s\">", outcome->name);
		if (!outcome->is_kept) {
			fputs("<failure message=\"", out);
			write_escaped(out, outcome->text);
			fputs("\"/>", out);
		}
		fputs("</testcase>\n", out);
	}
	fputs("</testsuite>\n</testsuites>\n", out);
	if (ferror(out) | fclose(out))
		torsh_die("can't write %s", path);
}

void torsh_outcomes_free(struct outcomes *outcomes)
{
	for (size_t i = 0; i < outcomes->n; i++)
		free(outcomes->items[i].text);
	free(outcomes->items);
	free(outcomes->file);
}
