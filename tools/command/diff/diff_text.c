/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/base/size.h"
#include "tools/command/diff/diff_report.h"
#include "tools/ops/module_totals.h"
#include "tools/report/text.h"

#define TEXT_LIMIT 10
#define FRAMES_SHOWN 4u
#define WHERE_BYTES 512

static const struct {
	const char *text;
	enum change_unit unit;
} totals[] = {
#define TOTAL(name, unit, text) [COMPARE_##name] = {text, CHANGE_##unit},
	COMPARE_TOTALS
#undef TOTAL
};

static const struct {
	const char *text;
	enum change_unit units[COMPARE_AMOUNTS];
} tables[] = {
#define TABLE(NAME, name, unit, first, other_unit, second, text) \
	[COMPARE_##NAME] = {text, {CHANGE_##unit, CHANGE_##other_unit}},
	COMPARE_TABLES
#undef TABLE
};

static const char *const headings[] = {
	[STATUS_FIXED] = "Fixed",
	[STATUS_NEW] = "New",
	[STATUS_WORSE] = "Worse",
	[STATUS_BETTER] = "Better",
};

static const char *amount_text(uint64_t amount, enum change_unit unit, char *out)
{
	switch (unit) {
	case CHANGE_BYTES:
		return torsh_size_human(amount, out);
	case CHANGE_NS:
		return torsh_size_duration(amount, out);
	case CHANGE_FLOPS:
		return torsh_size_si(amount, out);
	default:
		return torsh_size_grouped(amount, out);
	}
}

/* Returns "-77.3 MiB", or "=" for no change, in out of SIZE_TEXT_BYTES + 1. */
static const char *change_text(const struct change *change, enum change_unit unit, char *out)
{
	bool is_more = change->after > change->before;

	if (!change->is_change)
		return strcpy(out, "=");
	*out = is_more ? '+' : '-';
	amount_text(is_more ? change->after - change->before : change->before - change->after, unit,
		    out + 1);
	return out;
}

static void print_spread(const struct diff_view *view, const struct change *change,
			 enum change_unit unit)
{
	char text[SIZE_TEXT_BYTES];

	if (change->has_spread)
		printf("   (±%s over %zu and %zu runs)", amount_text(change->spread, unit, text),
		       view->comparison->n_runs[COMPARE_BEFORE],
		       view->comparison->n_runs[COMPARE_AFTER]);
}

static void print_total(const struct diff_view *view, enum compare_total total)
{
	const struct change *change = &view->comparison->totals[total].change;
	enum change_unit unit = totals[total].unit;
	enum growth_verdict verdict = torsh_growth_verdict(view->limits, view->comparison, total);
	char text[SIZE_TEXT_BYTES + 1];

	if (!change->is_known && verdict != GROWTH_UNKNOWN)
		return;
	printf("%-18s", totals[total].text);
	if (!change->is_known) {
		printf(" %12s %12s %12s   not known: over the limit\n", "-", "-", "-");
		return;
	}
	printf(" %12s", amount_text(change->before, unit, text));
	printf(" %12s", amount_text(change->after, unit, text));
	printf(" %12s", change_text(change, unit, text));
	if (change->is_change)
		printf("  %s", change->after > change->before ? "▲" : "▼");
	print_spread(view, change, unit);
	printf("%s\n", verdict == GROWTH_TOO_MUCH ? "   over the limit" : "");
}

static void append(char *out, const char *text)
{
	size_t n = strlen(out);

	snprintf(out + n, WHERE_BYTES - n, "%s", text);
}

static void append_line(char *out, const struct frame *frame)
{
	char line[32];

	append(out, torsh_place_file(frame->file));
	snprintf(line, sizeof(line), ":%d", frame->line);
	append(out, line);
}

static void append_function(char *out, const struct frame *frame)
{
	append(out, frame->function ? frame->function
		    : frame->module ? torsh_place_file(frame->module)
				    : "?");
}

/* Returns "srv.c:7 parse ‹ handle ‹ main", then what was moved or renamed. */
static const char *where_of(const struct compare_row *row, char *out)
{
	const struct place *place =
		&row->places[row->is_on[COMPARE_AFTER] ? COMPARE_AFTER : COMPARE_BEFORE];
	const struct place *old = &row->places[COMPARE_BEFORE];
	size_t first = 0;

	*out = '\0';
	if (row->name)
		return row->name;
	if (place->operator_name) {
		append(out, place->operator_name);
		append(out, " at ");
	}
	if (place->user) {
		append_line(out, place->user);
		append(out, " ");
		while (first < place->n_frames && place->frames[first] != place->user)
			first++;
	}
	for (size_t i = first; i < place->n_frames && i < first + FRAMES_SHOWN; i++) {
		append(out, i > first ? " ‹ " : "");
		append_function(out, place->frames[i]);
		if (place->frames[i]->function && strcmp(place->frames[i]->function, "main") == 0)
			break;
	}
	if (row->is_moved && old->user) {
		append(out, ", was at ");
		append_line(out, old->user);
	}
	if (row->renamed_from) {
		append(out, ", ");
		append(out, row->renamed_to);
		append(out, " was ");
		append(out, row->renamed_from);
	}
	return out;
}

static void print_row(const struct diff_view *view, enum compare_table table,
		      const struct compare_row *row)
{
	enum change_unit unit = tables[table].units[0];
	char text[SIZE_TEXT_BYTES + 1], before[SIZE_TEXT_BYTES], after[SIZE_TEXT_BYTES];
	char where[WHERE_BYTES];

	printf("  %-7s %12s  ", headings[row->status], change_text(&row->changes[0], unit, text));
	if (table == COMPARE_MODULES)
		torsh_text_function(stdout, torsh_module_display_name(row->name));
	else
		torsh_text_function(stdout, where_of(row, where));
	if (row->status == STATUS_WORSE || row->status == STATUS_BETTER)
		printf("  (%s, was %s)", amount_text(row->changes[0].after, unit, after),
		       amount_text(row->changes[0].before, unit, before));
	if (row->changes[1].is_change && tables[table].units[1] == CHANGE_FLOPS)
		printf("  %s FLOPs", change_text(&row->changes[1], CHANGE_FLOPS, text));
	print_spread(view, &row->changes[0], unit);
	putchar('\n');
}

/* Print moved and renamed rows with unchanged amounts. */
static void print_moved(const struct compare_rows *rows, size_t n_limit)
{
	char where[WHERE_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		const struct compare_row *row = &rows->items[i];

		if (row->status != STATUS_SAME || !row->changes[0].before ||
		    (!row->is_moved && !row->renamed_from) || n++ >= n_limit)
			continue;
		printf("  Same                  ");
		torsh_text_function(stdout, where_of(row, where));
		putchar('\n');
	}
}

static void print_table(const struct diff_view *view, enum compare_table table)
{
	const struct compare_rows *rows = &view->comparison->tables[table];
	size_t n_changed = 0, n_limit = view->has_limit ? view->limit : TEXT_LIMIT;

	if (!rows->n)
		return;
	while (n_changed < rows->n && rows->items[n_changed].status != STATUS_SAME)
		n_changed++;
	if (!n_limit)
		n_limit = rows->n;
	putchar('\n');
	torsh_text_heading(stdout, "%s: %zu changed, %zu the same", tables[table].text, n_changed,
			   rows->n - n_changed);
	for (size_t i = 0; i < n_changed && i < n_limit; i++)
		print_row(view, table, &rows->items[i]);
	if (n_changed > n_limit)
		printf("  ... and %zu more; --limit 0 shows all\n", n_changed - n_limit);
	if (table == COMPARE_SITES || table == COMPARE_PEAK)
		print_moved(rows, n_limit);
}

void torsh_diff_text(const struct diff_view *view)
{
	torsh_text_heading(stdout, "%-18s %12s %12s %12s", "", "before", "after", "change");
	for (enum compare_total total = 0; total < N_COMPARE_TOTALS; total++)
		print_total(view, total);
	for (size_t i = 0; i < view->comparison->n_notes; i++)
		printf("%s.\n", view->comparison->notes[i]);
	for (enum compare_table table = 0; table < N_COMPARE_TABLES; table++)
		print_table(view, table);
}
