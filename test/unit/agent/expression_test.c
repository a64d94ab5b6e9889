/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The stack machine of DWARF expressions: what it computes, and what it refuses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/stack/dwarf/cfi.h"
#include "agent/stack/dwarf/expression.h"

static const uintptr_t memory[] = {0x1122334455667788, 42};
static uintptr_t registers[CFI_N_REGISTERS];

static int run(const uint8_t *block, uintptr_t *result)
{
	uintptr_t known_page = 0, initial = 100, values[EXPRESSION_VALUES];

	for (uintptr_t i = 0; i < CFI_N_REGISTERS; i++)
		registers[i] = 1000 * i;
	registers[CFI_RBX] = (uintptr_t)memory;
	return torsh_expression_run(block, registers, &initial, &known_page, values, result);
}

#define EXPECT(value, ...)                                                 \
	do {                                                               \
		const uint8_t operations[] = {__VA_ARGS__},                \
			      block[] = {sizeof(operations), __VA_ARGS__}; \
		uintptr_t result;                                          \
                                                                           \
		assert_int_equal(run(block, &result), 0);                  \
		assert_int_equal(result, (uintptr_t)(value));              \
	} while (0)

#define EXPECT_BAD(...)                                                    \
	do {                                                               \
		const uint8_t operations[] = {__VA_ARGS__},                \
			      block[] = {sizeof(operations), __VA_ARGS__}; \
		uintptr_t result;                                          \
                                                                           \
		assert_int_equal(run(block, &result), -EINVAL);            \
	} while (0)

enum { LIT = 0x30, BREG = 0x70, C1S = 0x09, U2 = 0x0a };

static void operands_come_from_constants_registers_and_the_initial_value(void **state)
{
	(void)state;
	EXPECT(100, 0x96);
	EXPECT(31, LIT + 31);
	EXPECT(-2, C1S, 0xfe);
	EXPECT(0x1234, U2, 0x34, 0x12);
	EXPECT(300, 0x10, 0xac, 0x02);
	EXPECT(-128, 0x11, 0x80, 0x7f);
	EXPECT(7000 - 16, BREG + 7, 0x70);
	EXPECT(6008, 0x92, 6, 8);
}

static void memory_is_read_by_words_and_by_parts(void **state)
{
	(void)state;
	EXPECT(0x1122334455667788, BREG + 3, 0, 0x06);
	EXPECT(42, BREG + 3, 8, 0x06);
	EXPECT(0x5566, BREG + 3, 2, 0x94, 2);
	EXPECT_BAD(LIT + 8, 0x06);
	EXPECT_BAD(BREG + 3, 5, 0x94, 4);
}

static void arithmetic_is_that_of_two_operands(void **state)
{
	(void)state;
	EXPECT(4, LIT + 6, LIT + 12, 0x1a);
	EXPECT(-3, C1S, 0xf9, LIT + 2, 0x1b);
	EXPECT(-6, LIT + 6, LIT + 12, 0x1c);
	EXPECT(1, LIT + 7, LIT + 2, 0x1d);
	EXPECT(72, LIT + 6, LIT + 12, 0x1e);
	EXPECT(14, LIT + 6, LIT + 12, 0x21);
	EXPECT(18, LIT + 6, LIT + 12, 0x22);
	EXPECT(24, LIT + 6, LIT + 2, 0x24);
	EXPECT(0, LIT + 6, U2, 64, 0, 0x24);
	EXPECT(3, LIT + 6, LIT + 1, 0x25);
	EXPECT(-1, C1S, 0xfe, LIT + 1, 0x26);
	EXPECT(10, LIT + 6, LIT + 12, 0x27);
	EXPECT(110, 0x23, 10);
	EXPECT(-100, 0x1f);
	EXPECT(~UINT64_C(100), 0x20);
	EXPECT(5, C1S, 0xfb, 0x19);
}

static void comparisons_are_signed(void **state)
{
	(void)state;
	EXPECT(0, C1S, 0xff, LIT + 1, 0x29);
	EXPECT(0, C1S, 0xff, LIT + 1, 0x2a);
	EXPECT(1, LIT + 2, LIT + 1, 0x2b);
	EXPECT(1, LIT + 1, LIT + 1, 0x2c);
	EXPECT(1, C1S, 0xff, LIT + 1, 0x2d);
	EXPECT(1, C1S, 0xff, LIT + 1, 0x2e);
}

static void the_stack_can_be_turned_over(void **state)
{
	(void)state;
	EXPECT(200, 0x12, 0x22);
	EXPECT(100, LIT + 1, 0x13);
	EXPECT(100, LIT + 1, 0x14);
	EXPECT(100, LIT + 1, LIT + 2, 0x15, 2);
	EXPECT(99, LIT + 1, 0x16, 0x16, 0x1c);
	/* 100 1 2 becomes 2 100 1: 100 - 1, then 2 - 99. */
	EXPECT(-97, LIT + 1, LIT + 2, 0x17, 0x1c, 0x1c);
}

static void branches_go_both_ways_and_end(void **state)
{
	(void)state;
	EXPECT(7, 0x2f, 1, 0, LIT + 5, LIT + 7);
	EXPECT(6, LIT + 6, LIT + 0, 0x28, 1, 0, 0x96);
	/* Counts 100 down to 0. */
	EXPECT(0, LIT + 1, 0x1c, 0x12, 0x28, 0xfa, 0xff);
	EXPECT_BAD(0x2f, 0xfd, 0xff);
	EXPECT_BAD(0x2f, 9, 0);
}

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	EXPECT_BAD(0x13, 0x13);
	EXPECT_BAD(LIT + 1, LIT + 0, 0x1b);
	EXPECT_BAD(LIT + 1, LIT + 0, 0x1d);
	EXPECT_BAD(0xff);
	EXPECT_BAD(BREG + 31, 0);
	EXPECT_BAD(U2, 1);
	EXPECT_BAD(0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12,
		   0x12, 0x12, 0x12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operands_come_from_constants_registers_and_the_initial_value),
		cmocka_unit_test(memory_is_read_by_words_and_by_parts),
		cmocka_unit_test(arithmetic_is_that_of_two_operands),
		cmocka_unit_test(comparisons_are_signed),
		cmocka_unit_test(the_stack_can_be_turned_over),
		cmocka_unit_test(branches_go_both_ways_and_end),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
