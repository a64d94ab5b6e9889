/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which frames of a stack each view shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/recorded_fixture.h"
#include "tools/memory/allocation_sites.h"

#define EVAL "_PyEval_EvalFrameDefault@/usr/bin/python"
/* Innermost first: an extension calls back into Python; the interpreter's frames are in between. */
#define WHOLE                                               \
	"malloc@/libc.so list_resize@/usr/bin/python " EVAL \
	" %key:5 vectorcall@/usr/bin/python call@/ext.so "  \
	"cfunction@/usr/bin/python " EVAL                   \
	" %inner:7 %outer:9 Py_RunMain@/usr/bin/python start@/libc.so"

/* The frames' names in the view, innermost first. */
static void expect_view(const char *stack, enum stack_view view, const char *expected)
{
	uint32_t number = fixture_stack(&fixture, stack);
	struct symbols *symbols = torsh_symbols_create(false);
	struct recorded_process *process;
	char found[512] = "";
	uint32_t depth;

	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	process = recording->processes[0];
	number = torsh_stack_view(process, number, symbols, view);
	depth = process->tables->stacks[number].depth;
	for (; number; number = process->tables->stacks[number].parent, depth--) {
		const struct frames *frames = torsh_symbols_frames(
			symbols, process, process->tables->stacks[number].address);

		assert_true(number < process->tables->n_stacks);
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s",
			 *found ? " " : "",
			 frames->frames[0].function ? frames->frames[0].function : "?");
	}
	assert_string_equal(found, expected);
	assert_int_equal(depth, 0);
	torsh_symbols_destroy(symbols);
}

static void merged_has_python_instead_of_the_interpreter(void **state)
{
	(void)state;
	expect_view(WHOLE, STACK_VIEW_MERGED, "malloc list_resize key call inner outer start");
}

static void python_has_nothing_else(void **state)
{
	(void)state;
	expect_view(WHOLE, STACK_VIEW_PYTHON, "key inner outer");
}

static void native_has_no_python(void **state)
{
	(void)state;
	expect_view(
		WHOLE, STACK_VIEW_NATIVE,
		"malloc list_resize _PyEval_EvalFrameDefault vectorcall call cfunction _PyEval_EvalFrameDefault "
		"Py_RunMain start");
}

/* A stack without Python in a process that has some: nothing stands for its frames. */
static void without_lines_of_python_the_interpreter_stays(void **state)
{
	(void)state;
	fixture_stack(&fixture, WHOLE);
	expect_view("malloc@/libc.so Py_Initialize@/usr/bin/python start@/libc.so",
		    STACK_VIEW_MERGED, "malloc Py_Initialize start");
}

static void frames_of_greenlets_are_not_lost(void **state)
{
	(void)state;
	expect_view("malloc@/libc.so " EVAL " %in:1 switch@/greenlet.so %lost:2", STACK_VIEW_MERGED,
		    "malloc in switch lost");
}

static void lines_and_files_are_those_of_the_code(void **state)
{
	struct symbols *symbols = torsh_symbols_create(true);
	const struct frame *frame;

	(void)state;
	fixture_stack(&fixture, "%name:12");
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	frame = torsh_symbols_frames(symbols, recording->processes[0], 0)->frames;
	assert_string_equal(frame->function, "name");
	assert_string_equal(frame->file, "name.py");
	assert_int_equal(frame->line, 12);
	assert_true(frame->is_python);
	assert_null(frame->module);
	torsh_symbols_destroy(symbols);
}

static void stacks_that_look_alike_then_are_one(void **state)
{
	struct allocation_sites sites = {0};

	(void)state;
	fixture_live(&fixture,
		     fixture_stack(&fixture, "malloc@/libc.so " EVAL " %f:1 one@/usr/bin/python"),
		     1, 10);
	fixture_live(&fixture,
		     fixture_stack(&fixture, "malloc@/libc.so " EVAL " %f:1 two@/usr/bin/python"),
		     2, 200);
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	torsh_sites_collect(&sites, recording->processes[0], SITES_LIVE);
	torsh_sites_merge_stacks(&sites, NULL);
	assert_int_equal(sites.n, 1);
	assert_int_equal(sites.items[0].bytes, 210);
	assert_int_equal(sites.items[0].blocks, 3);
	torsh_sites_free(&sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(merged_has_python_instead_of_the_interpreter,
						make_profile, free_profile),
		cmocka_unit_test_setup_teardown(python_has_nothing_else, make_profile,
						free_profile),
		cmocka_unit_test_setup_teardown(native_has_no_python, make_profile, free_profile),
		cmocka_unit_test_setup_teardown(without_lines_of_python_the_interpreter_stays,
						make_profile, free_profile),
		cmocka_unit_test_setup_teardown(frames_of_greenlets_are_not_lost, make_profile,
						free_profile),
		cmocka_unit_test_setup_teardown(lines_and_files_are_those_of_the_code, make_profile,
						free_profile),
		cmocka_unit_test_setup_teardown(stacks_that_look_alike_then_are_one, make_profile,
						free_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
