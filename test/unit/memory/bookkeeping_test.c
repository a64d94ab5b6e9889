/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which blocks are the libraries' bookkeeping, by stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/recording_fixture.h"
#include "tools/memory/leaks/bookkeeping.h"

#define LIBC "@/lib/x86_64-linux-gnu/libc.so.6"
#define LOADER "@/lib64/ld-linux-x86-64.so.2"
#define CXX "@/usr/lib/libstdc++.so.6.0.30"
#define PROGRAM "@/opt/program"

static const char *judge(const char *frames)
{
	struct recording *recording = torsh_recording_new("test");
	struct bookkeeping book;
	struct fixture fixture;
	const char *what;
	uint32_t stack, caller;

	fixture_start(&fixture, 1, 100);
	stack = fixture_stack(&fixture, frames);
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	torsh_bookkeeping_start(&book, NULL, recording->processes[0]);
	what = torsh_bookkeeping_of(&book, stack, &caller);
	torsh_bookkeeping_end(&book);
	fixture_free(&fixture);
	torsh_recording_destroy(recording);
	return what;
}

static void what_the_program_allocates_is_its_own(void **state)
{
	(void)state;
	assert_null(judge("leak" PROGRAM " main" PROGRAM " __libc_start_main" LIBC));
	assert_null(judge("_Znwm" CXX " make" PROGRAM " main" PROGRAM));
	assert_null(judge("anything"));
	assert_null(judge(""));
}

static void what_the_caller_owns_is_the_programs(void **state)
{
	(void)state;
	assert_null(judge("strdup" LIBC " main" PROGRAM));
	assert_null(judge("__strdup" LIBC " main" PROGRAM));
	assert_null(judge("? __vasprintf_internal" LIBC " __asprintf_chk" LIBC " main" PROGRAM));
	assert_null(judge("?" LIBC " fopen64" LIBC " main" PROGRAM));
	assert_null(judge("?" LIBC " getaddrinfo" LIBC " main" PROGRAM));
	assert_null(judge("_dl_x@/lib/libnss_dns.so.2 ?" LIBC " getaddrinfo" LIBC " main" PROGRAM));
	assert_null(judge("realpath@@GLIBC_2.3" LIBC " main" PROGRAM));
	assert_null(judge("__isoc99_sscanf" LIBC " main" PROGRAM));
	assert_null(judge("_obstack_begin" LIBC " main" PROGRAM));
}

static void what_the_c_library_keeps_is_bookkeeping(void **state)
{
	(void)state;
	assert_string_equal(
		judge("_IO_file_doallocate" LIBC " ?" LIBC " printf" LIBC " main" PROGRAM),
		"C library: stdio buffers");
	assert_string_equal(judge("?" LIBC " __printf_chk" LIBC " main" PROGRAM),
			    "C library: stdio buffers");
	assert_string_equal(judge("setlocale" LIBC " main" PROGRAM), "C library: locales");
	assert_string_equal(judge("?" LIBC " setenv" LIBC " main" PROGRAM),
			    "C library: environment");
	assert_string_equal(judge("never_heard_of" LIBC " main" PROGRAM), "C library");
	assert_string_equal(judge("?" LIBC " ?" LIBC), "C library");
}

static void only_the_innermost_run_of_the_c_library_counts(void **state)
{
	(void)state;
	assert_null(judge("compare" PROGRAM " qsort" LIBC " main" PROGRAM));
	assert_null(judge("strdup" LIBC " compare" PROGRAM " setlocale" LIBC " main" PROGRAM));
}

static void the_loaders_blocks_are_bookkeeping(void **state)
{
	(void)state;
	assert_string_equal(
		judge("_dl_new_object" LOADER " _dl_open" LOADER " dlopen" LIBC " main" PROGRAM),
		"loader");
	assert_string_equal(judge("?" LIBC " dlsym" LIBC " main" PROGRAM), "C library: loader");
	assert_string_equal(
		judge("?@/lib/ld-musl-x86_64.so.1 setenv@/lib/ld-musl-x86_64.so.1 main" PROGRAM),
		"C library: environment");
	assert_null(judge("strdup@/lib/ld-musl-x86_64.so.1 main" PROGRAM));
}

static void the_emergency_pool_is_the_cxx_run_times(void **state)
{
	(void)state;
	assert_string_equal(judge("?" CXX " call_init" LOADER " _dl_init" LOADER),
			    "C++ run-time: emergency pool");
	assert_null(judge("_Znwm" CXX " _GLOBAL__sub_I_x" PROGRAM " call_init" LOADER));
}

static void names_of_modules_decide_what_they_are(void **state)
{
	(void)state;
	assert_int_equal(torsh_bookkeeping_module("/lib64/ld-linux-x86-64.so.2"),
			 BOOKKEEPING_LOADER);
	assert_int_equal(torsh_bookkeeping_module("/lib/libc.so.6"), BOOKKEEPING_C_LIBRARY);
	assert_int_equal(torsh_bookkeeping_module("/lib/libc-2.31.so"), BOOKKEEPING_C_LIBRARY);
	assert_int_equal(torsh_bookkeeping_module("libpthread.so.0"), BOOKKEEPING_C_LIBRARY);
	assert_int_equal(torsh_bookkeeping_module("/lib/libcrypto.so.3"), BOOKKEEPING_NONE);
	assert_int_equal(torsh_bookkeeping_module("/lib/libc10.so"), BOOKKEEPING_NONE);
	assert_int_equal(torsh_bookkeeping_module("/usr/bin/ld"), BOOKKEEPING_NONE);
	assert_int_equal(torsh_bookkeeping_module("/opt/program"), BOOKKEEPING_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_program_allocates_is_its_own),
		cmocka_unit_test(what_the_caller_owns_is_the_programs),
		cmocka_unit_test(what_the_c_library_keeps_is_bookkeeping),
		cmocka_unit_test(only_the_innermost_run_of_the_c_library_counts),
		cmocka_unit_test(the_loaders_blocks_are_bookkeeping),
		cmocka_unit_test(the_emergency_pool_is_the_cxx_run_times),
		cmocka_unit_test(names_of_modules_decide_what_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
