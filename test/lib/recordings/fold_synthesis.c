/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Makes folds of a large job from that of one rank: fold_synthesis RANK.fold N FOLDER writes
 * FOLDER/00000.fold and so on, each with noise in all of its values and, some, with a path that
 * only few ranks have. Rank SLOW_RANK enters collectives late.
 */
#include <stdio.h>
#include <stdlib.h>

#include "test/unit/fixtures/random.h"
#include "tools/base/die.h"
#include "tools/ranks/fold/fold_file.h"
#include "tools/ranks/make/rank_row.h"

#define SLOW_RANK 77u
#define SLOW_NS 20000000
#define RARE_PATHS 500u /* in the whole job */

static uint64_t with_noise(uint64_t value, uint64_t *random)
{
	return value - value / 20 + random_below(random, value / 10 + 1);
}

/* Returns the fold with noise, as rank number i has it. */
static struct fold *vary(const struct fold *fold, uint32_t i, uint64_t *random)
{
	struct fold *varied = torsh_fold_create(), *copy = torsh_fold_create();
	char name[32];

	torsh_fold_merge(copy, fold);
	for (size_t id = 0; id < N_FOLD_TABLES; id++) {
		for (size_t k = 0; k < copy->tables[id].n; k++) {
			for (size_t c = 0; c < torsh_fold_columns(id); c++)
				copy->tables[id].rows[k].values[c] =
					with_noise(copy->tables[id].rows[k].values[c], random);
		}
	}
	torsh_fold_merge(varied, copy);
	if (i % 10 == 0) {
		const uint64_t one[FOLD_COLUMNS_MAX] = {1, 1, 1, 1, 1};

		snprintf(name, sizeof(name), "rare_%u", (unsigned)random_below(random, RARE_PATHS));
		torsh_fold_add(varied, FOLD_SPANS,
			       torsh_fold_node(
				       varied, 0,
				       &(struct fold_key){.kind = FOLD_FUNCTION, .function = name}),
			       0, one);
	}
	torsh_fold_destroy(copy);
	return varied;
}

/* Vary a row's times; returns what was added to each sample's, which the next call takes back. */
static void vary_row(Torsh__FoldRank *row, uint32_t i, uint32_t n, int64_t *added, uint64_t *random)
{
	int64_t before = 0;

	row->has_rank = row->has_world_size = 1;
	row->rank = i;
	row->world_size = n;
	row->pid = 100000 + i;
	for (size_t k = 0; k < row->n_issued_step; k++) {
		int64_t now =
			(int64_t)random_below(random, 1000000) + (i == SLOW_RANK ? SLOW_NS : 0);

		/* The step is a difference: what the sample before got must be taken off. */
		row->issued_step[k] += now - before - added[k];
		added[k] = now - before;
		before = now;
	}
}

int main(int argc, char **argv)
{
	struct fold *fold = torsh_fold_create();
	struct fold_entries entries = {0};
	struct fold_bytes file;
	char error[256], path[4096];
	uint64_t random = 1;
	Torsh__FoldRank *row;
	int64_t *added;

	if (argc != 4)
		torsh_die("usage: fold_synthesis RANK.fold N FOLDER");
	if (torsh_fold_map(&file, argv[1], error, sizeof(error)) ||
	    torsh_fold_read_bytes(fold, &entries, 0, file.bytes, file.n, error, sizeof(error)))
		torsh_die("%s", error);
	row = torsh_fold_entry_rank(&file, &entries.items[0]);
	added = torsh_need_items(NULL, 0, row->n_issued_step, sizeof(*added));
	for (uint32_t i = 0, n = (uint32_t)atoi(argv[2]); i < n; i++) {
		struct fold *varied = vary(fold, i, &random);
		struct fold_writer *writer;

		snprintf(path, sizeof(path), "%s/%05u.fold", argv[3], i);
		vary_row(row, i, n, added, &random);
		writer = torsh_fold_write(path);
		torsh_fold_write_rank(writer, row);
		torsh_fold_write_end(writer, varied);
		torsh_fold_destroy(varied);
	}
	free(added);
	torsh_rank_row_free(row);
	free(entries.items);
	torsh_fold_unmap(&file);
	torsh_fold_destroy(fold);
	return 0;
}
