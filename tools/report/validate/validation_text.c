/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A validation as text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tools/base/size.h"
#include "tools/report/validate/validation.h"

#define ROWS_SHOWN 10u

static const char *amount(uint64_t value, enum change_unit unit, char out[SIZE_TEXT_BYTES])
{
	return unit == CHANGE_NS ? torsh_size_duration(value, out) : torsh_size_human(value, out);
}

static void print_runs(const struct validation *validation)
{
	char before[SIZE_TEXT_BYTES], after[SIZE_TEXT_BYTES], claims[SIZE_TEXT_BYTES];

	printf("%s before, %s after, %s\n", torsh_size_counted(validation->n_before, "run", before),
	       torsh_size_counted(validation->n_after, "run", after),
	       torsh_size_counted(validation->claims->n, "claim", claims));
}

/* Print "43.4 ms -> 1.43 ms (±210 µs over 3 and 3 runs)". */
static void print_change(const struct validation *validation, const struct change *change,
			 enum change_unit unit)
{
	char before[SIZE_TEXT_BYTES], after[SIZE_TEXT_BYTES], spread[SIZE_TEXT_BYTES];

	printf("%s → %s", amount(change->before, unit, before), amount(change->after, unit, after));
	if (change->has_spread)
		printf(" (±%s over %zu and %zu runs)", amount(change->spread, unit, spread),
		       validation->n_before, validation->n_after);
	else
		fputs(" (single runs: their spread is not known)", stdout);
}

static void print_percent(double percent, const char *none)
{
	char share[SIZE_TEXT_BYTES];

	if (isnan(percent))
		fputs(none, stdout);
	else
		fputs(torsh_size_percent(percent, 100, share), stdout);
}

static void print_seen(const struct claim_verdict *verdict)
{
	char share[SIZE_TEXT_BYTES];

	if (isnan(verdict->seen_pct))
		fputs("nothing to compare", stdout);
	else if (!verdict->change.is_change)
		fputs("no change", stdout);
	else
		printf("%s %s", torsh_size_percent(fabs(verdict->seen_pct), 100, share),
		       verdict->seen_pct >= 0 ? "less" : "more");
}

static void print_verdict(const struct validation *validation, const struct claim_verdict *verdict)
{
	printf("\n%-12s  %s: ", torsh_verdict_names[verdict->verdict], verdict->claim->rule);
	if (isnan(verdict->claim->gain_pct))
		fputs("no gain was predicted", stdout);
	else {
		fputs("predicted at most ", stdout);
		print_percent(verdict->claim->gain_pct, "");
		fputs(" less", stdout);
	}
	fputs(", seen ", stdout);
	print_seen(verdict);
	putchar('\n');
	if (verdict->change.is_known) {
		printf("              %s ", torsh_brief_figure_words[verdict->figure]);
		print_change(validation, &verdict->change,
			     torsh_brief_figure_units[verdict->figure]);
		putchar('\n');
	}
	fputs("              cause: ", stdout);
	print_percent(verdict->before_pct, "its size isn't known");
	fputs(" before; after the change ", stdout);
	if (verdict->cause == CAUSE_GONE || verdict->cause == CAUSE_UNKNOWN)
		fputs(verdict->cause == CAUSE_GONE ? "gone, or below its limit" : "not judged",
		      stdout);
	else
		print_percent(verdict->after_pct, "it is there");
	putchar('\n');
	if (verdict->reason)
		printf("              %s\n", verdict->reason);
}

static void print_row(const struct results *results, const struct result_row *row)
{
	char n[SIZE_TEXT_BYTES];

	printf("  %-9s  %s: ", torsh_results_verdict_names[row->verdict], row->name);
	if (!row->before.n_runs || !row->after.n_runs) {
		printf("only recorded %s the change\n", row->before.n_runs ? "before" : "after");
		return;
	}
	printf("%s, last %.6g → %.6g", torsh_size_counted(row->after.n_most, "value", n),
	       row->before.last, row->after.last);
	if (row->verdict == RESULTS_NOT_KNOWN)
		fputs(", not in all runs\n", stdout);
	else if (row->difference <= results->tolerance && row->verdict == RESULTS_DIFFERENT)
		printf(", %s before\n", torsh_size_counted(row->before.n_most, "value", n));
	else
		printf(", largest difference %.2g\n", row->difference);
}

static void print_results(const struct results *results)
{
	char n[SIZE_TEXT_BYTES];

	printf("\nResults: %s", torsh_results_verdict_names[results->verdict]);
	if (results->reason)
		printf("; %s", results->reason);
	else
		printf(", to a relative difference of %g", results->tolerance);
	putchar('\n');
	for (size_t i = 0; i < results->n && i < ROWS_SHOWN; i++)
		print_row(results, &results->rows[i]);
	if (results->n > ROWS_SHOWN)
		printf("  and %s more\n", torsh_size_counted(results->n - ROWS_SHOWN, "value", n));
	if (results->text.before) {
		printf("  %-9s  printed: %s compared, largest difference %.2g",
		       torsh_results_verdict_names[results->text.line ? RESULTS_DIFFERENT
								      : RESULTS_EQUAL],
		       torsh_size_counted(results->text.n_numbers, "number", n),
		       results->text.difference);
		if (results->text.line)
			printf(", from line %" PRIu64 " of %s on", results->text.line,
			       results->text.before);
		putchar('\n');
	}
	if (results->status_varies)
		puts("  exit status: it varies from run to run");
	else if (results->has_status_before && results->has_status_after)
		printf("  %-9s  exit status: %d → %d\n",
		       torsh_results_verdict_names[results->status_before != results->status_after],
		       results->status_before, results->status_after);
}

void torsh_validation_text(const struct validation *validation)
{
	print_runs(validation);
	if (!validation->claims->n)
		puts("\nThe brief has no hypothesis: nothing was claimed.");
	for (size_t i = 0; i < validation->claims->n; i++)
		print_verdict(validation, &validation->verdicts[i]);
	print_results(&validation->results);
}
