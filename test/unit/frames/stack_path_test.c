/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The callers of one stack after another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/recording_fixture.h"
#include "tools/frames/stack_path.h"

#define N_STACKS 5

static void a_stack_shares_the_callers_of_the_one_before(void **state)
{
	static const struct {
		const char *frames; /* innermost first */
		size_t first, depth;
	} expected[N_STACKS] = {
		{"leaf work main", 1, 3}, {"leaf work main", 4, 3}, {"other work main", 3, 3},
		{"main", 2, 1},		  {"leaf work main", 2, 3},
	};
	struct recording *recording = torsh_recording_new("test");
	uint32_t stacks[N_STACKS];
	struct fixture fixture;
	struct stack_path path;

	(void)state;
	fixture_start(&fixture, 1, 100);
	for (size_t i = 0; i < N_STACKS; i++)
		stacks[i] = fixture_stack(&fixture, expected[i].frames);
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	torsh_stack_path_start(&path, recording->processes[0]);
	for (size_t i = 0; i < N_STACKS; i++) {
		assert_int_equal(torsh_stack_path_take(&path, stacks[i]), expected[i].first);
		assert_int_equal(path.depth, expected[i].depth);
		for (uint32_t k = (uint32_t)path.depth, stack = stacks[i]; k; k--) {
			assert_int_equal(path.stacks[k], stack);
			stack = recording->processes[0]->tables->stacks[stack].parent;
		}
	}
	assert_int_equal(torsh_stack_path_take(&path, 0), 1);
	assert_int_equal(path.depth, 0);
	assert_int_equal(torsh_stack_path_take(&path, UINT32_MAX), 1);
	assert_int_equal(path.depth, 0);
	torsh_stack_path_end(&path);
	fixture_free(&fixture);
	torsh_recording_destroy(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_shares_the_callers_of_the_one_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
