/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the tests of stacks use of cmocka, for a CPU that this machine has no libcmocka of. A failed
 * assertion ends the program.
 */
#ifndef TORSH_TEST_STACKS_CMOCKA_H
#define TORSH_TEST_STACKS_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
	const char *name;
	void (*run)(void **state);
};

#define cmocka_unit_test(function)                   \
	{                                            \
		.name = #function, .run = (function) \
	}

#define fail_msg(...)                                  \
	do {                                           \
		printf("%s:%d: ", __FILE__, __LINE__); \
		printf(__VA_ARGS__);                   \
		printf("\n");                          \
		fflush(stdout);                        \
		_Exit(1);                              \
	} while (0)
#define assert_true(claim)                                \
	do {                                              \
		if (!(claim))                             \
			fail_msg("not true: %s", #claim); \
	} while (0)
#define assert_compared(a, op, b)                                                              \
	do {                                                                                   \
		unsigned long long a_ = (unsigned long long)(a), b_ = (unsigned long long)(b); \
                                                                                               \
		if (!(a_ op b_))                                                               \
			fail_msg("%s is %#llx, %s is %#llx", #a, a_, #b, b_);                  \
	} while (0)
#define assert_int_equal(a, b) assert_compared(a, ==, b)
#define assert_int_not_equal(a, b) assert_compared(a, !=, b)
#define assert_false(claim) assert_true(!(claim))
#define assert_non_null(pointer) assert_true((pointer) != NULL)
#define assert_ptr_equal(a, b) assert_true((const void *)(a) == (const void *)(b))
#define assert_ptr_not_equal(a, b) assert_true((const void *)(a) != (const void *)(b))
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)
#define print_message(...) printf(__VA_ARGS__)
#define print_error(...) printf(__VA_ARGS__)
#define skip() return

static inline int run_tests(const struct CMUnitTest *tests, size_t n, int (*start)(void **),
			    int (*stop)(void **))
{
	void *state = NULL;

	if (start && start(&state))
		fail_msg("the fixture did not start");
	for (size_t i = 0; i < n; i++) {
		tests[i].run(&state);
		printf("passed: %s\n", tests[i].name);
		fflush(stdout);
	}
	return stop ? stop(&state) : 0;
}

#define cmocka_run_group_tests(tests, start, stop) \
	run_tests(tests, sizeof(tests) / sizeof(*(tests)), start, stop)

#endif
