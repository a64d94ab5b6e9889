/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Repeated stretches of sequences, against a search that tries everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "test/unit/fixtures/random.h"
#include "tools/device/kernels/layers.h"

static bool accept_all(void *context, struct layer_run *run)
{
	(void)context;
	(void)run;
	return true;
}

/* Each letter is an item. */
static size_t find(const char *text, struct layer_run **runs)
{
	size_t n = strlen(text);
	uint64_t *items = calloc(n + 1, sizeof(*items));

	for (size_t i = 0; i < n; i++)
		items[i] = (uint64_t)text[i];
	n = torsh_layers_find(items, n, accept_all, NULL, runs);
	free(items);
	return n;
}

static void expect_run(const char *text, size_t start, size_t period, size_t n_instances,
		       size_t n_rest)
{
	struct layer_run *runs;

	assert_int_equal(find(text, &runs), 1);
	assert_int_equal(runs->start, start);
	assert_int_equal(runs->period, period);
	assert_int_equal(runs->n_instances, n_instances);
	assert_int_equal(runs->n_rest, n_rest);
	free(runs);
}

static void expect_none(const char *text)
{
	struct layer_run *runs;

	assert_int_equal(find(text, &runs), 0);
	free(runs);
}

static void layers_are_the_shortest_period_of_the_longest_run(void **state)
{
	(void)state;
	expect_run("xyabcabcabcabcz", 2, 3, 4, 0);
	expect_run("abababab", 0, 2, 4, 0);
	expect_run("pabcaabcaabcaq", 1, 4, 3, 0);
	expect_run("eabcabcabd", 1, 3, 2, 2);
	/* What repeats itself inside of a layer is a part of it. */
	expect_run("zababcababcababcy", 1, 5, 3, 0);
}

static void what_does_not_repeat_itself_has_no_layers(void **state)
{
	(void)state;
	expect_none("");
	expect_none("a");
	expect_none("abcdefgh");
	expect_none("abcabd");
	/* The same launch over and over again is no layer. */
	expect_none("aaaaaaaaaaaa");
	expect_none("xaaaay");
}

static void several_runs_are_found_beside_each_other(void **state)
{
	struct layer_run *runs;

	(void)state;
	assert_int_equal(find("0abcabcabc1dededede2", &runs), 2);
	assert_int_equal(runs[0].start, 1);
	assert_int_equal(runs[0].period, 3);
	assert_int_equal(runs[1].start, 11);
	assert_int_equal(runs[1].period, 2);
	assert_int_equal(runs[1].n_instances, 4);
	free(runs);
}

static bool is_periodic(const uint64_t *items, size_t start, size_t n, size_t period)
{
	for (size_t i = start; i + period < start + n; i++) {
		if (items[i] != items[i + period])
			return false;
	}
	return true;
}

/*
 * The most items that a run's whole instances cover: of a period of two items that differ at least.
 */
static size_t search_coverage(const uint64_t *items, size_t n)
{
	size_t best = 0;

	for (size_t start = 0; start < n; start++) {
		for (size_t period = 2; start + 2 * period <= n; period++) {
			size_t end = start + period;

			while (end < n && items[end] == items[end - period])
				end++;
			end -= (end - start) % period;
			if (end >= start + 2 * period && end - start > best &&
			    !is_periodic(items, start, end - start, 1))
				best = end - start;
		}
	}
	return best;
}

static void random_sequences_have_the_runs_that_a_naive_search_finds(void **state)
{
	uint64_t items[60], seed = 1;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		size_t n = random_below(&seed, 60) + 1, n_runs;
		struct layer_run *runs;

		for (size_t i = 0; i < n; i++)
			items[i] = random_below(&seed, 1 + (unsigned)round % 4);
		n_runs = torsh_layers_find(items, n, accept_all, NULL, &runs);
		assert_int_equal(n_runs ? runs[0].period * runs[0].n_instances : 0,
				 search_coverage(items, n));
		for (size_t i = 0; i < n_runs; i++) {
			assert_true(runs[i].n_instances >= 2 && runs[i].period >= 2);
			assert_true(
				is_periodic(items, runs[i].start,
					    runs[i].period * runs[i].n_instances + runs[i].n_rest,
					    runs[i].period));
			for (size_t k = 0; k < i; k++)
				assert_true(runs[k].start + runs[k].period * runs[k].n_instances <=
						    runs[i].start ||
					    runs[i].start + runs[i].period * runs[i].n_instances <=
						    runs[k].start);
		}
		free(runs);
	}
}

static bool accept_three(void *context, struct layer_run *run)
{
	(void)context;
	return run->period == 3;
}

static void runs_that_are_refused_leave_their_place_to_others(void **state)
{
	/* "abcabc" lies twice in it, between what repeats itself with the period 7. */
	static const char text[] = "abcabcxabcabcx";
	uint64_t items[14];
	struct layer_run *runs;

	(void)state;
	for (size_t i = 0; i < 14; i++)
		items[i] = (uint64_t)text[i];
	assert_int_equal(torsh_layers_find(items, 14, accept_three, NULL, &runs), 2);
	assert_int_equal(runs[0].start, 0);
	assert_int_equal(runs[1].start, 7);
	free(runs);
}

static void long_sequences_are_cut(void **state)
{
	size_t n = 2 * LAYERS_SEQUENCE_MAX;
	uint64_t *items = calloc(n, sizeof(*items));
	struct layer_run *runs;

	(void)state;
	for (size_t i = 0; i < n; i++)
		items[i] = i % 8;
	assert_int_equal(torsh_layers_find(items, n, accept_all, NULL, &runs), 1);
	assert_int_equal(runs->period, 8);
	assert_int_equal(runs->n_instances, LAYERS_SEQUENCE_MAX / 8);
	free(runs);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_are_the_shortest_period_of_the_longest_run),
		cmocka_unit_test(what_does_not_repeat_itself_has_no_layers),
		cmocka_unit_test(several_runs_are_found_beside_each_other),
		cmocka_unit_test(random_sequences_have_the_runs_that_a_naive_search_finds),
		cmocka_unit_test(runs_that_are_refused_leave_their_place_to_others),
		cmocka_unit_test(long_sequences_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
