/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Rows of the C library's functions, read from one pc to a later or earlier one, are those that are
 * read from the function's start.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/modules/module_watch.h"
#include "agent/stack/dwarf/cfi.h"
#include "agent/stack/recent_functions.h"

#ifdef __aarch64__ /* emulated */
#define N_READ 40000
#else
#define N_READ 400000
#endif
#define MOST_BYTES 200 /* from one pc to the next */

static struct module library;
static struct cfi_function onwards, afresh;

static void nothing_is_gone(uintptr_t start, uintptr_t end)
{
	(void)start;
	(void)end;
}

static int find_library(void **state)
{
	(void)state;
	torsh_modules_start(nothing_is_gone, true);
	return torsh_modules_find((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"), &library) == MODULE_NONE;
}

static int open_at(uintptr_t pc, struct cfi_function *function)
{
	return torsh_cfi_open(library.eh_frame_hdr, &library.memory, pc, function);
}

static void expect_same_row(const struct cfi_row *row, uintptr_t pc)
{
	assert_int_equal(open_at(pc, &afresh), 0);
	assert_int_equal(torsh_cfi_read(&afresh, pc), 0);
	assert_memory_equal(row, &afresh.row, sizeof(*row));
}

static bool is_in(const struct cfi_function *function, uintptr_t pc)
{
	return pc >= function->description.start && pc < function->description.end;
}

static uintptr_t some_code(void)
{
	return library.start + (uintptr_t)random() % (library.end - library.start);
}

static void rows_read_onwards_are_those_read_afresh(void **state)
{
	uintptr_t pc = 0;
	int n_same = 0;

	(void)state;
	for (int i = 0; i < N_READ; i++) {
		pc += (uintptr_t)random() % MOST_BYTES;
		if (!is_in(&onwards, pc)) {
			pc = some_code();
			if (open_at(pc, &onwards))
				continue;
		} else if (random() % 4 == 0) {
			pc = onwards.description.start;
		}
		assert_int_equal(torsh_cfi_read(&onwards, pc), 0);
		expect_same_row(&onwards.row, pc);
		n_same++;
	}
	assert_true(n_same > N_READ / 10);
}

static void rows_of_recent_functions_are_those_read_afresh(void **state)
{
	static struct recent_functions recent;
	uintptr_t pcs[RECENT_FUNCTIONS + 1] = {0};

	(void)state;
	for (int i = 0; i < N_READ; i++) {
		uintptr_t *pc = &pcs[(unsigned)random() % (RECENT_FUNCTIONS + 1)];
		struct looked_up found;

		*pc += (uintptr_t)random() % MOST_BYTES;
		if (open_at(*pc, &afresh) || random() % 16 == 0)
			*pc = some_code();
		found = torsh_recent_functions_look_up(&recent, *pc);
		assert_int_equal(found.answer, MODULE_KNOWN);
		assert_int_equal(found.module->start, library.start);
		assert_int_equal(found.err != 0, open_at(*pc, &afresh) != 0);
		if (!found.err)
			expect_same_row(found.row, *pc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_read_onwards_are_those_read_afresh),
		cmocka_unit_test(rows_of_recent_functions_are_those_read_afresh),
	};

	return cmocka_run_group_tests(tests, find_library, NULL);
}
