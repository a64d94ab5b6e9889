/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Folds merge to the same bytes in every tree, to the right sums, and bad ones are refused. */
#include "test/unit/fixtures/fold_fixture.h"

#include "tools/ranks/fold/fold_merge.h"
#include "tools/ranks/fold/sketch.h"

#define FOLDS 9
#define TREES 40
#define JOBS 12
#define FILES_MAX 16384

static char folder[] = "/tmp/torsh-fold-test-XXXXXX";
static char names[FILES_MAX][64];
static int n_files;

static char *new_path(void)
{
	char *path = names[n_files];

	assert_true(n_files < FILES_MAX);
	snprintf(path, sizeof(names[0]), "%s/%d.fold", folder, n_files++);
	return path;
}

static void write_fold(const char *path, struct fold *fold, const uint32_t *ranks, size_t n)
{
	struct fold_writer *writer = torsh_fold_write(path);

	for (size_t i = 0; i < n; i++) {
		Torsh__FoldRank *row = fixture_row(ranks[i], 1);

		torsh_fold_write_rank(writer, row);
		torsh_rank_row_free(row);
	}
	torsh_fold_write_end(writer, fold);
}

/* Merge the paths in a random order and tree; returns the result's path. */
static char *merge_randomly(char *const *paths, size_t n, uint64_t *random)
{
	char *left[FOLDS], *all[FOLDS];
	size_t n_left = n;

	memcpy(left, paths, n * sizeof(*left));
	while (n_left > 1) {
		size_t n_merged = 2 + random_below(random, n_left - 1);

		for (size_t i = 0; i < n_merged; i++) {
			size_t chosen = random_below(random, n_left);

			all[i] = left[chosen];
			left[chosen] = left[--n_left];
		}
		left[n_left] = new_path();
		torsh_fold_merge_files((const char *const *)all, n_merged, left[n_left]);
		n_left++;
	}
	return left[0];
}

static void order_and_tree_change_no_byte(void **state)
{
	uint64_t random = 17;

	(void)state;
	for (int job = 0; job < JOBS; job++) {
		char *paths[FOLDS], *first = NULL;
		uint8_t *expected = NULL;
		size_t n_expected = 0;

		for (uint32_t i = 0; i < FOLDS; i++) {
			struct fold *fold = fixture_fold(&random);
			const uint32_t ranks[] = {i, 100 + i};

			paths[i] = new_path();
			write_fold(paths[i], fold, ranks, 1 + i % 2);
			torsh_fold_destroy(fold);
		}
		for (int tree = 0; tree < TREES; tree++) {
			char *merged = merge_randomly(paths, FOLDS, &random);
			size_t n;
			uint8_t *bytes = fixture_bytes(merged, &n);

			if (!first) {
				first = merged;
				expected = bytes;
				n_expected = n;
				continue;
			}
			assert_int_equal(n, n_expected);
			assert_memory_equal(bytes, expected, n);
			free(bytes);
		}
		free(expected);
	}
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* A path and sub as a text: nodes have other numbers in each fold. */
static void path_text(const struct fold *fold, const struct fold_row *row, uint32_t sub, char *out)
{
	size_t n = 0;

	for (uint32_t node = row->node; node; node = fold->nodes[node].parent)
		n += (size_t)sprintf(out + n, "%u %s %s %s<", fold->nodes[node].kind,
				     fold->texts[fold->nodes[node].function],
				     fold->texts[fold->nodes[node].file],
				     fold->texts[fold->nodes[node].build_id]);
	sprintf(out + n, "%u", sub);
}

struct expected {
	char *path;
	uint64_t values[N_FOLD_SPANS];
};

static void add_expected(struct expected *all, size_t *n, const char *path, const uint64_t *values)
{
	size_t i = 0;

	while (i < *n && strcmp(all[i].path, path))
		i++;
	if (i == *n) {
		all[(*n)++].path = strdup(path);
		memcpy(all[i].values, values, sizeof(all[i].values));
		return;
	}
	for (size_t k = 0; k < FOLD_SPANS_min_ns; k++)
		all[i].values[k] += values[k];
	if (values[FOLD_SPANS_min_ns] < all[i].values[FOLD_SPANS_min_ns])
		all[i].values[FOLD_SPANS_min_ns] = values[FOLD_SPANS_min_ns];
	if (values[FOLD_SPANS_max_ns] > all[i].values[FOLD_SPANS_max_ns])
		all[i].values[FOLD_SPANS_max_ns] = values[FOLD_SPANS_max_ns];
}

static void sums_are_those_of_all_rows(void **state)
{
	static struct expected all[FOLDS * 200];
	struct fold *folds[FOLDS], *merged = torsh_fold_create();
	uint64_t random = 5;
	uint32_t shift = 0;
	size_t n = 0;
	char path[1024];

	(void)state;
	for (size_t i = 0; i < FOLDS; i++) {
		folds[i] = fixture_fold(&random);
		shift = folds[i]->shift > shift ? folds[i]->shift : shift;
		torsh_fold_merge(merged, folds[i]);
	}
	for (size_t i = 0; i < FOLDS; i++) {
		const struct fold_table *table = &folds[i]->tables[FOLD_SPANS];

		for (size_t k = 0; k < table->n; k++) {
			uint32_t sub = table->rows[k].sub;

			sub = sub ? 1 + ((sub - 1) >> (shift - folds[i]->shift)) : 0;
			path_text(folds[i], &table->rows[k], sub, path);
			add_expected(all, &n, path, table->rows[k].values);
		}
		torsh_fold_destroy(folds[i]);
	}
	torsh_fold_settle(merged);
	assert_int_equal(merged->shift, shift);
	assert_int_equal(merged->tables[FOLD_SPANS].n, n);
	for (size_t k = 0; k < n; k++) {
		const struct fold_row *row = &merged->tables[FOLD_SPANS].rows[k];
		size_t i = 0;

		path_text(merged, row, row->sub, path);
		while (i < n && strcmp(all[i].path, path))
			i++;
		assert_true(i < n);
		assert_memory_equal(row->values, all[i].values, sizeof(all[i].values));
	}
	for (size_t i = 0; i < n; i++)
		free(all[i].path);
	torsh_fold_destroy(merged);
}

static void a_process_in_two_folds_is_found(void **state)
{
	struct fold_entries entries = {0};
	const uint32_t ranks[] = {3, 8};
	char *path = new_path(), error[256];
	struct fold *fold = torsh_fold_create();
	uint8_t *bytes;
	size_t n;

	(void)state;
	write_fold(path, fold, ranks, 2);
	bytes = fixture_bytes(path, &n);
	assert_int_equal(torsh_fold_read_bytes(NULL, &entries, 0, bytes, n, error, sizeof(error)),
			 0);
	assert_int_equal(torsh_fold_sort_entries(&entries), SIZE_MAX);
	assert_int_equal(torsh_fold_read_bytes(NULL, &entries, 1, bytes, n, error, sizeof(error)),
			 0);
	assert_int_equal(torsh_fold_sort_entries(&entries), 1);
	assert_int_equal(entries.items[1].rank, 4);
	free(entries.items);
	free(bytes);
	torsh_fold_destroy(fold);
}

/* ---- bad files ------------------------------------------------------------------------------- */

static void cut_and_changed_files_are_refused(void **state)
{
	uint64_t random = 3;
	struct fold *fold = fixture_fold(&random);
	const uint32_t ranks[] = {1, 2};
	char *path = new_path(), error[256];
	uint8_t *bytes;
	size_t n;

	(void)state;
	write_fold(path, fold, ranks, 2);
	bytes = fixture_bytes(path, &n);
	for (size_t i = 0; i < n; i++) {
		struct fold_entries entries = {0};

		*error = 0;
		assert_int_not_equal(
			torsh_fold_read_bytes(NULL, &entries, 0, bytes, i, error, sizeof(error)),
			0);
		assert_true(strlen(error) > 4);
		free(entries.items);
	}
	for (size_t i = 0; i < n; i++) {
		struct fold_entries entries = {0};
		struct fold_bytes file = {.bytes = bytes, .n = n};
		bool is_good;

		bytes[i] ^= 0x40;
		is_good = !torsh_fold_read_bytes(NULL, &entries, 0, bytes, n, error, sizeof(error));
		/* Rows of ranks are checked when they are read or copied; 4 bytes are reserved. */
		for (size_t k = 0; is_good && k < entries.n; k++) {
			Torsh__FoldRank *row = torsh_fold_entry_rank(&file, &entries.items[k]);

			is_good = row;
			torsh_rank_row_free(row);
		}
		assert_true(!is_good || (i >= 12 && i < 16));
		free(entries.items);
		bytes[i] ^= 0x40;
	}
	free(bytes);
	torsh_fold_destroy(fold);
}

static void sketch_values_are_within_a_32nd(void **state)
{
	uint64_t random = 9;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t value = random_wide(&random), other = random_wide(&random);
		uint64_t middle = torsh_sketch_value(torsh_sketch_bucket(value));
		uint64_t off = middle > value ? middle - value : value - middle;

		assert_true(off <= value / 32);
		assert_true(torsh_sketch_bucket(value) < SKETCH_BUCKETS);
		if (value <= other)
			assert_true(torsh_sketch_bucket(value) <= torsh_sketch_bucket(other));
	}
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char path[64];

	(void)state;
	for (int i = 0; i < n_files; i++) {
		snprintf(path, sizeof(path), "%s/%d.fold", folder, i);
		unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_and_tree_change_no_byte),
		cmocka_unit_test(sums_are_those_of_all_rows),
		cmocka_unit_test(a_process_in_two_folds_is_found),
		cmocka_unit_test(cut_and_changed_files_are_refused),
		cmocka_unit_test(sketch_values_are_within_a_32nd),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
