/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Windows that a program opens: nested, overlapping, closed and begun anew. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/writer/fold/memory_windows.h"

struct program {
	struct memory_windows windows;
	struct peak_tracker heap;
	struct channel_memory memory; /* the last answer */
	uint64_t stamp;
};

static void change(struct program *program, int64_t bytes)
{
	torsh_peak_tracker_change(&program->heap, ++program->stamp, bytes > 0 ? 1 : -1, bytes);
}

static int call(struct program *program, uint32_t verb, uint32_t window)
{
	return torsh_memory_windows_call(&program->windows, &program->heap, verb, window,
					 &program->memory);
}

static void windows_overlap(void **state)
{
	struct program program = {0};
	uint32_t first, second;

	(void)state;
	change(&program, 100);
	assert_int_equal(call(&program, CALL_MEMORY_BEGIN, 0), 0);
	first = program.memory.window;
	change(&program, 50);
	change(&program, -50);
	assert_int_equal(call(&program, CALL_MEMORY_BEGIN, 0), 0);
	second = program.memory.window;
	assert_int_not_equal(first, second);
	change(&program, 20);
	assert_int_equal(call(&program, CALL_MEMORY_END, first), 0);
	assert_int_equal(program.memory.begin_bytes, 100);
	assert_int_equal(program.memory.peak_bytes, 150);
	assert_int_equal(program.memory.bytes, 120);
	assert_int_equal(program.memory.blocks, 2);
	change(&program, -120);
	assert_int_equal(call(&program, CALL_MEMORY_END, second), 0);
	assert_int_equal(program.memory.peak_bytes, 120);
	assert_int_equal(program.memory.bytes, 0);
	assert_int_equal(call(&program, CALL_MEMORY, second), -ENOENT);
	/* The number is used again. */
	assert_int_equal(call(&program, CALL_MEMORY_BEGIN, 0), 0);
	assert_int_equal(program.memory.peak_bytes, 0);
	torsh_memory_windows_destroy(&program.windows);
}

static void the_first_window_is_always_there(void **state)
{
	struct program program = {0};

	(void)state;
	change(&program, 70);
	change(&program, -60);
	assert_int_equal(call(&program, CALL_MEMORY, 0), 0);
	assert_int_equal(program.memory.peak_bytes, 70);
	assert_int_equal(program.memory.begin_bytes, 0);
	assert_int_equal(call(&program, CALL_MEMORY_RESET, 0), 0);
	assert_int_equal(program.memory.peak_bytes, 70);
	assert_int_equal(call(&program, CALL_MEMORY_END, 0), 0);
	assert_int_equal(program.memory.peak_bytes, 10);
	assert_int_equal(call(&program, CALL_MEMORY, 0), 0);
	torsh_peak_tracker_settle(&program.heap);
	assert_int_equal(program.heap.peak_bytes, 70);
}

static void what_is_no_call_is_refused(void **state)
{
	struct program program = {0};

	(void)state;
	assert_int_equal(call(&program, 0, 0), -EINVAL);
	assert_int_equal(call(&program, CALL_PAUSE, 0), -EINVAL);
	assert_int_equal(call(&program, UINT32_MAX, 0), -EINVAL);
	assert_int_equal(call(&program, CALL_MEMORY, UINT32_MAX), -ENOENT);
}

static void windows_are_limited(void **state)
{
	struct program program = {0};

	(void)state;
	for (uint32_t i = 0; i < MEMORY_WINDOWS_MAX; i++)
		assert_int_equal(call(&program, CALL_MEMORY_BEGIN, 0), 0);
	assert_int_equal(call(&program, CALL_MEMORY_BEGIN, 0), -EMFILE);
	assert_int_equal(call(&program, CALL_MEMORY_END, 2), 0);
	assert_int_equal(call(&program, CALL_MEMORY_BEGIN, 0), 0);
	assert_int_equal(program.memory.window, 2);
	torsh_memory_windows_destroy(&program.windows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_overlap),
		cmocka_unit_test(the_first_window_is_always_there),
		cmocka_unit_test(what_is_no_call_is_refused),
		cmocka_unit_test(windows_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
