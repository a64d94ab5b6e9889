/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Any number of process groups have numbers of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collectors/torch/operator_events.h"

#define N_GROUPS 2000u

static uintptr_t address_of(uint32_t i)
{
	return 0x7f0000000000u + 64u * (uintptr_t)i;
}

static void groups_of_any_number_are_distinguished(void **state)
{
	(void)state;
	assert_int_equal(torsh_torch_group_number(address_of(0)), 0);
	for (uint32_t i = 0; i < N_GROUPS; i++)
		assert_int_equal(torsh_torch_group_add(address_of(i)), i + 1);
	for (uint32_t i = 0; i < N_GROUPS; i++)
		assert_int_equal(torsh_torch_group_number(address_of(i)), i + 1);
	assert_int_equal(torsh_torch_group_number(address_of(N_GROUPS)), 0);
	/* One where another was. */
	assert_int_equal(torsh_torch_group_add(address_of(7)), N_GROUPS + 1);
	assert_int_equal(torsh_torch_group_number(address_of(7)), N_GROUPS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_of_any_number_are_distinguished),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
