/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Rows too small for a report: of the peak and of stacks there are thousands. They are folded after
 * rows were matched, and only if they are small in all runs: so none seems new or fixed by that.
 */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/compare/compare.h"

#define ROWS_KEPT 100u /* of so few all are kept */
#define LEAST_PART 1000u /* 0.1 % */

static size_t count_runs(const struct comparison *comparison)
{
	return comparison->n_runs[COMPARE_BEFORE] + comparison->n_runs[COMPARE_AFTER];
}

/* The smallest amount of a row that is kept, by run; the caller frees it. */
static uint64_t *find_least(const struct comparison *comparison, const struct compare_rows *rows)
{
	uint64_t *least = torsh_need_items(NULL, 0, count_runs(comparison), sizeof(*least));

	for (size_t run = 0; run < count_runs(comparison); run++) {
		for (size_t i = 0; i < rows->n; i++)
			least[run] += rows->items[i].amounts[0][run];
		least[run] = least[run] / LEAST_PART + 1;
	}
	return least;
}

static bool is_small(const struct comparison *comparison, const struct compare_row *row,
		     const uint64_t *least)
{
	for (size_t run = 0; run < count_runs(comparison); run++) {
		if (row->amounts[0][run] >= least[run])
			return false;
	}
	return true;
}

/* Add the amounts of a row to the folded one, and free it. */
static void fold(const struct comparison *comparison, struct compare_row *folded,
		 struct compare_row *row)
{
	for (size_t k = 0; k < COMPARE_AMOUNTS; k++) {
		for (size_t run = 0; run < count_runs(comparison); run++)
			folded->amounts[k][run] += row->amounts[k][run];
		free(row->amounts[k]);
	}
	for (size_t side = 0; side < N_COMPARE_SIDES; side++) {
		folded->is_on[side] = folded->is_on[side] || row->is_on[side];
		torsh_place_free(&row->places[side]);
	}
}

void torsh_compare_fold_small(struct comparison *comparison, enum compare_table table)
{
	struct compare_rows *rows = &comparison->tables[table];
	struct compare_row folded;
	uint64_t *least;
	size_t n = 0;

	if (rows->n <= ROWS_KEPT)
		return;
	least = find_least(comparison, rows);
	folded = *torsh_compare_row(comparison, table, 0, "small rows");
	folded.name = torsh_intern(&comparison->texts, "others, each below 0.1%");
	rows->n--;
	for (size_t i = 0; i < rows->n; i++) {
		if (is_small(comparison, &rows->items[i], least))
			fold(comparison, &folded, &rows->items[i]);
		else
			rows->items[n++] = rows->items[i];
	}
	rows->items[n++] = folded;
	rows->n = n;
	free(least);
}
