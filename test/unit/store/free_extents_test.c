/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/store/free_extents.h"

static struct place marked;
static int marks_fail;

static int mark(void *context, struct place place)
{
	(void)context;
	marked = place;
	return marks_fail;
}

static void give(struct free_extents *places, uint64_t offset, uint64_t n_bytes)
{
	torsh_free_extents_give_back(places, (struct place){offset, n_bytes});
}

static void neighbours_become_one(void **state)
{
	struct free_extents places = {0};

	(void)state;
	give(&places, 100, 50);
	give(&places, 200, 50);
	give(&places, 150, 50);
	torsh_free_extents_settle(&places, mark, NULL);
	assert_int_equal(places.n_free, 1);
	assert_int_equal(marked.offset, 100);
	assert_int_equal(marked.n_bytes, 150);
	torsh_free_extents_destroy(&places);
}

static void what_rests_is_not_taken(void **state)
{
	struct free_extents places = {0};

	(void)state;
	give(&places, 100, 50);
	assert_int_equal(torsh_free_extents_take(&places, 50, 40).n_bytes, 0);
	torsh_free_extents_settle(&places, mark, NULL);
	assert_int_equal(torsh_free_extents_take(&places, 50, 40).offset, 100);
	assert_int_equal(places.n_free, 0);
	torsh_free_extents_destroy(&places);
}

static void a_rest_has_room_for_a_header(void **state)
{
	struct free_extents places = {0};
	struct place whole;

	(void)state;
	give(&places, 100, 100);
	torsh_free_extents_settle(&places, mark, NULL);
	assert_int_equal(torsh_free_extents_take(&places, 70, 40).n_bytes, 0);
	whole = torsh_free_extents_take(&places, 60, 40);
	assert_int_equal(whole.offset, 100);
	assert_int_equal(whole.n_bytes, 100);
	assert_int_equal(places.free[0].offset, 160);
	assert_int_equal(places.free[0].n_bytes, 40);
	torsh_free_extents_destroy(&places);
}

static void what_can_not_be_marked_is_forgotten(void **state)
{
	struct free_extents places = {0};

	(void)state;
	give(&places, 100, 100);
	marks_fail = -1;
	torsh_free_extents_settle(&places, mark, NULL);
	marks_fail = 0;
	assert_int_equal(places.n_free, 0);
	torsh_free_extents_destroy(&places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_become_one),
		cmocka_unit_test(what_rests_is_not_taken),
		cmocka_unit_test(a_rest_has_room_for_a_header),
		cmocka_unit_test(what_can_not_be_marked_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
