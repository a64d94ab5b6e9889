/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/compare/compare.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/size.h"

/* A row's time must change by more than 1 / this of its table's total: less is noise. */
#define LEAST_SHARE_OF_TIME 100u

const char *const torsh_compare_status_names[N_STATUSES] = {
#define STATUS(NAME, name) [STATUS_##NAME] = #name,
	COMPARE_STATUSES
#undef STATUS
};

static const enum change_unit units_of_totals[] = {
#define TOTAL(name, unit, text) [COMPARE_##name] = CHANGE_##unit,
	COMPARE_TOTALS
#undef TOTAL
};

static const enum change_unit units_of_tables[][COMPARE_AMOUNTS] = {
#define TABLE(NAME, name, unit, first, other_unit, second, text) \
	[COMPARE_##NAME] = {CHANGE_##unit, CHANGE_##other_unit},
	COMPARE_TABLES
#undef TABLE
};

static size_t n_runs(const struct comparison *comparison)
{
	return comparison->n_runs[COMPARE_BEFORE] + comparison->n_runs[COMPARE_AFTER];
}

void torsh_comparison_begin(struct comparison *comparison, size_t n_before, size_t n_after,
			    const struct change_rules *rules)
{
	*comparison = (struct comparison){.rules = *rules, .n_runs = {n_before, n_after}};
	for (size_t i = 0; i < N_COMPARE_TOTALS; i++) {
		comparison->totals[i].is_known =
			torsh_need_items(NULL, 0, n_runs(comparison), sizeof(bool));
		comparison->totals[i].values =
			torsh_need_items(NULL, 0, n_runs(comparison), sizeof(uint64_t));
	}
}

struct compare_row *torsh_compare_row(struct comparison *comparison, enum compare_table table,
				      size_t run, const char *key)
{
	struct compare_rows *rows = &comparison->tables[table];
	const struct hash_entry *entry = torsh_hash_map_put_text(&rows->by_key, key, rows->n);
	size_t at = entry->value;
	struct compare_row *row;

	if (at == rows->n) {
		rows->items = torsh_array_reserve(rows->items, rows->n, &rows->n_room,
						  sizeof(*rows->items));
		row = &rows->items[rows->n++];
		row->key = entry->key;
		for (size_t i = 0; i < COMPARE_AMOUNTS; i++)
			row->amounts[i] =
				torsh_need_items(NULL, 0, n_runs(comparison), sizeof(uint64_t));
	}
	row = &rows->items[at];
	row->is_on[run >= comparison->n_runs[COMPARE_BEFORE]] = true;
	return row;
}

struct compare_row *torsh_compare_place_row(struct comparison *comparison, enum compare_table table,
					    size_t run, struct place *place)
{
	enum compare_side side = run >= comparison->n_runs[COMPARE_BEFORE];
	char *shape = torsh_place_shape(place);
	char *key = torsh_need_text("%d\n%d\n%s", side, torsh_place_line(place), shape);
	struct compare_row *row = torsh_compare_row(comparison, table, run, key);

	if (row->places[side].shape) {
		torsh_place_free(place);
	} else {
		/* The end of the key: as many as stacks, each of some 100 bytes. */
		row->places[side] = *place;
		row->places[side].shape = row->key + strlen(key) - strlen(shape);
	}
	free(shape);
	free(key);
	return row;
}

void torsh_compare_note(struct comparison *comparison, char *text)
{
	comparison->notes = torsh_array_reserve(comparison->notes, comparison->n_notes,
						&comparison->notes_room, sizeof(char *));
	comparison->notes[comparison->n_notes++] = text;
}

/* ---- judge ----------------------------------------------------------------------------------- */

static void judge_totals(struct comparison *comparison)
{
	struct change_rules rules = comparison->rules;

	rules.n_figures = N_COMPARE_TOTALS;
	for (size_t i = 0; i < N_COMPARE_TOTALS; i++) {
		bool is_known = true;

		for (size_t run = 0; run < n_runs(comparison); run++)
			is_known = is_known && comparison->totals[i].is_known[run];
		if (is_known)
			comparison->totals[i].change = torsh_change_judge(
				comparison->totals[i].values, comparison->n_runs[COMPARE_BEFORE],
				comparison->n_runs[COMPARE_AFTER], units_of_totals[i], &rules, 0);
	}
}

static enum compare_status status_of(const struct change *change)
{
	if (!change->is_change)
		return STATUS_SAME;
	if (!change->after)
		return STATUS_FIXED;
	if (!change->before)
		return STATUS_NEW;
	return change->after > change->before ? STATUS_WORSE : STATUS_BETTER;
}

/* Returns the sum of all rows' first amount, in the run in which it is smallest. */
static uint64_t smallest_sum(const struct comparison *comparison, const struct compare_rows *rows)
{
	uint64_t smallest = UINT64_MAX;

	for (size_t run = 0; run < n_runs(comparison); run++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < rows->n; i++)
			sum += rows->items[i].amounts[0][run];
		smallest = sum < smallest ? sum : smallest;
	}
	return smallest;
}

static int compare_rows(const void *a, const void *b)
{
	const struct compare_row *x = a, *y = b;
	const struct change *c = &x->changes[0], *d = &y->changes[0];
	uint64_t by_x = c->after > c->before ? c->after - c->before : c->before - c->after;
	uint64_t by_y = d->after > d->before ? d->after - d->before : d->before - d->after;

	if (x->status != y->status)
		return (x->status > y->status) - (x->status < y->status);
	if (by_x != by_y)
		return (by_x < by_y) - (by_x > by_y);
	return (c->before < d->before) - (c->before > d->before);
}

/* Counts rows that exceed that amount in some run: the others cannot change by more. */
static size_t count_judged(const struct comparison *comparison, const struct compare_rows *rows,
			   uint64_t least)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		uint64_t most = 0;

		for (size_t run = 0; run < n_runs(comparison); run++) {
			uint64_t amount = rows->items[i].amounts[0][run];

			most = amount > most ? amount : most;
		}
		n += most > least;
	}
	return n;
}

static void judge_rows(struct comparison *comparison, enum compare_table table)
{
	struct compare_rows *rows = &comparison->tables[table];
	uint64_t least = units_of_tables[table][0] == CHANGE_NS
				 ? smallest_sum(comparison, rows) / LEAST_SHARE_OF_TIME
				 : 0;
	struct change_rules rules = comparison->rules;

	rules.n_figures = count_judged(comparison, rows, least);
	for (size_t i = 0; i < rows->n; i++) {
		struct compare_row *row = &rows->items[i];

		for (size_t k = 0; k < COMPARE_AMOUNTS; k++)
			row->changes[k] = torsh_change_judge(
				row->amounts[k], comparison->n_runs[COMPARE_BEFORE],
				comparison->n_runs[COMPARE_AFTER], units_of_tables[table][k],
				&rules, k ? 0 : least);
		row->status = status_of(&row->changes[0]);
	}
	if (rows->n)
		qsort(rows->items, rows->n, sizeof(*rows->items), compare_rows);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static size_t n_known(const struct comparison *comparison, enum compare_total total,
		      enum compare_side side)
{
	size_t first = side == COMPARE_BEFORE ? 0 : comparison->n_runs[COMPARE_BEFORE], n = 0;

	for (size_t run = first; run < first + comparison->n_runs[side]; run++)
		n += comparison->totals[total].is_known[run];
	return n;
}

/* Adds a note if a total is unknown in some runs. */
static void note_unknown(struct comparison *comparison, enum compare_total total, const char *what)
{
	bool has_before =
		n_known(comparison, total, COMPARE_BEFORE) == comparison->n_runs[COMPARE_BEFORE];
	bool has_after =
		n_known(comparison, total, COMPARE_AFTER) == comparison->n_runs[COMPARE_AFTER];

	if (has_before && has_after)
		return;
	torsh_compare_note(
		comparison,
		!has_before && !has_after
			? torsh_need_text("neither BEFORE nor AFTER has %s: not compared", what)
			: torsh_need_text("%s has no %s: not compared",
					  has_before ? "AFTER" : "BEFORE", what));
}

static void note_sampling(struct comparison *comparison, enum compare_side side, const char *name)
{
	uint64_t every = comparison->sampled_every[side];
	char rate[SIZE_TEXT_BYTES];

	if (every)
		torsh_compare_note(
			comparison,
			torsh_need_text("the heap of %s was sampled, one block in %s on average: "
					"leaks and peaks are estimates",
					name, torsh_size_human(every, rate)));
}

static void note_problems(struct comparison *comparison)
{
	const char *before = comparison->programs[COMPARE_BEFORE];
	const char *after = comparison->programs[COMPARE_AFTER];

	if (strcmp(before, after) != 0)
		torsh_compare_note(
			comparison,
			torsh_need_text("BEFORE ran %s and AFTER ran %s: what they do is compared "
					"by name, as if they were one program",
					before, after));
	note_sampling(comparison, COMPARE_BEFORE, "BEFORE");
	note_sampling(comparison, COMPARE_AFTER, "AFTER");
	note_unknown(comparison, COMPARE_leaked_bytes, "recorded heap");
	note_unknown(comparison, COMPARE_step_median_ns, "steps");
}

void torsh_comparison_finish(struct comparison *comparison)
{
	torsh_compare_match(comparison, COMPARE_SITES);
	torsh_compare_match(comparison, COMPARE_LINES);
	torsh_compare_match(comparison, COMPARE_PEAK);
	torsh_compare_match(comparison, COMPARE_STACKS);
	torsh_compare_fold_small(comparison, COMPARE_PEAK);
	torsh_compare_fold_small(comparison, COMPARE_STACKS);
	judge_totals(comparison);
	for (enum compare_table table = 0; table < N_COMPARE_TABLES; table++)
		judge_rows(comparison, table);
	note_problems(comparison);
}

void torsh_comparison_free(struct comparison *comparison)
{
	for (size_t i = 0; i < N_COMPARE_TOTALS; i++) {
		free(comparison->totals[i].is_known);
		free(comparison->totals[i].values);
	}
	for (size_t table = 0; table < N_COMPARE_TABLES; table++) {
		struct compare_rows *rows = &comparison->tables[table];

		for (size_t i = 0; i < rows->n; i++) {
			torsh_place_free(&rows->items[i].places[COMPARE_BEFORE]);
			torsh_place_free(&rows->items[i].places[COMPARE_AFTER]);
			for (size_t k = 0; k < COMPARE_AMOUNTS; k++)
				free(rows->items[i].amounts[k]);
		}
		free(rows->items);
		torsh_hash_map_free(&rows->by_key);
	}
	for (size_t i = 0; i < comparison->n_notes; i++)
		free(comparison->notes[i]);
	free(comparison->notes);
	torsh_intern_free(&comparison->texts);
}
