/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/store/free_extents.h"

static struct extent marked;
static int marks_fail;

static int mark(void *context, struct extent extent)
{
	(void)context;
	marked = extent;
	return marks_fail;
}

static void give(struct free_extents *extents, uint64_t offset, uint64_t n_bytes)
{
	torsh_free_extents_add(extents, (struct extent){offset, n_bytes});
}

static void neighbours_become_one(void **state)
{
	struct free_extents extents = {0};

	(void)state;
	give(&extents, 100, 50);
	give(&extents, 200, 50);
	give(&extents, 150, 50);
	torsh_free_extents_settle(&extents, mark, NULL);
	assert_int_equal(extents.n_free, 1);
	assert_int_equal(marked.offset, 100);
	assert_int_equal(marked.n_bytes, 150);
	torsh_free_extents_destroy(&extents);
}

static void what_rests_is_not_taken(void **state)
{
	struct free_extents extents = {0};

	(void)state;
	give(&extents, 100, 50);
	assert_int_equal(torsh_free_extents_take(&extents, 50, 40).n_bytes, 0);
	torsh_free_extents_settle(&extents, mark, NULL);
	assert_int_equal(torsh_free_extents_take(&extents, 50, 40).offset, 100);
	assert_int_equal(extents.n_free, 0);
	torsh_free_extents_destroy(&extents);
}

static void a_rest_has_room_for_a_header(void **state)
{
	struct free_extents extents = {0};
	struct extent whole;

	(void)state;
	give(&extents, 100, 100);
	torsh_free_extents_settle(&extents, mark, NULL);
	assert_int_equal(torsh_free_extents_take(&extents, 70, 40).n_bytes, 0);
	whole = torsh_free_extents_take(&extents, 60, 40);
	assert_int_equal(whole.offset, 100);
	assert_int_equal(whole.n_bytes, 100);
	assert_int_equal(extents.free[0].offset, 160);
	assert_int_equal(extents.free[0].n_bytes, 40);
	torsh_free_extents_destroy(&extents);
}

static void what_can_not_be_marked_is_forgotten(void **state)
{
	struct free_extents extents = {0};

	(void)state;
	give(&extents, 100, 100);
	marks_fail = -1;
	torsh_free_extents_settle(&extents, mark, NULL);
	marks_fail = 0;
	assert_int_equal(extents.n_free, 0);
	torsh_free_extents_destroy(&extents);
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
