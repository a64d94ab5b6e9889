/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/libc/boot.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void blocks_are_aligned_zeroed_and_apart(void **state)
{
	char *last_end = NULL;

	(void)state;
	for (size_t n = 0; n < 100; n++) {
		size_t alignment = (size_t)1 << (n % 9);
		char *block = torsh_boot_alloc(n, alignment);

		assert_non_null(block);
		assert_true(torsh_boot_owns(block));
		assert_int_equal((uintptr_t)block % (alignment < 16 ? 16 : alignment), 0);
		assert_int_equal(torsh_boot_size(block), n);
		assert_true(block >= last_end);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(block[i], 0);
		memset(block, 0xff, n);
		last_end = block + n;
	}
}

static void what_is_too_large_is_refused_and_harms_nothing(void **state)
{
	size_t before_bytes, after_bytes, before = torsh_boot_served(&before_bytes);

	(void)state;
	errno = 0;
	assert_null(torsh_boot_alloc(BOOT_BYTES + 1, 0));
	assert_int_equal(errno, ENOMEM);
	assert_null(torsh_boot_alloc(SIZE_MAX, 0));
	assert_null(torsh_boot_alloc(16, 2 * BOOT_BYTES));
	assert_int_equal(torsh_boot_served(&after_bytes), before);
	assert_int_equal(after_bytes, before_bytes);
	assert_non_null(torsh_boot_alloc(16, 0));
}

static void other_memory_is_not_ours(void **state)
{
	char local;

	(void)state;
	assert_false(torsh_boot_owns(&local));
	assert_false(torsh_boot_owns(NULL));
	assert_false(torsh_boot_owns(torsh_boot_heap + BOOT_BYTES));
	assert_false(torsh_boot_owns(torsh_boot_heap - 1));
}

static void it_ends_without_overrunning(void **state)
{
	char *block, *last = NULL;

	(void)state;
	while ((block = torsh_boot_alloc(1000, 0)))
		last = block;
	assert_non_null(last);
	assert_true(last + 1000 <= torsh_boot_heap + BOOT_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_aligned_zeroed_and_apart),
		cmocka_unit_test(what_is_too_large_is_refused_and_harms_nothing),
		cmocka_unit_test(other_memory_is_not_ours),
		cmocka_unit_test(it_ends_without_overrunning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
