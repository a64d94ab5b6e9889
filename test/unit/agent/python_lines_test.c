/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lines of instructions, from tables of three CPython versions, against their known values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/wire/cpython/python_lines.h"

/*
 * The table of this function, by CPython 3.9, 3.10 and 3.12, its first line being 2:
 *
 *	def f(a):
 *	    try:
 *		x = (a +
 *		     1)
 *		for i in a: print(
 *		    i)
 *	    finally:
 *
 *
 *		y = 2
 *	    return x
 */
static const uint8_t lnotab[] = {0, 1, 2, 1, 2, 1, 2, 255, 4, 2, 10, 1, 2, 255, 8, 5, 12, 1};
static const uint8_t pairs[] = {2, 1, 2, 1, 2, 1, 4, 255, 10, 2, 2, 1, 8, 255, 4, 5, 4, 1, 6, 255};
static const uint8_t locations[] = {
	128, 0,	  240, 2,   8,	 5,  14,  216, 13, 14, 216, 13,	 14,  241, 3,	1,   14,
	15,  136, 1,   224, 17,	 18, 242, 0,   1,  9,  15,  136, 65,  148, 69,	216, 12,
	13,  245, 3,   1,   21,	 15, 241, 0,   1,  9,  15,  240, 10,  0,   13,	14,  136,
	1,   216, 11,  12,  128, 72, 248, 240, 3,  0,  13,  14,	 137, 1,   250,
};

/* From this offset on it is this line; 0: none. */
struct span {
	int32_t offset;
	uint32_t line;
};

static uint32_t expected_at(const struct span *spans, size_t n, int32_t offset)
{
	while (spans[n - 1].offset > offset)
		n--;
	return spans[n - 1].line;
}

/* Each offset after each other one: a search goes on where the last one ended. */
static void expect_lines(enum cpython_lines how, const uint8_t *table, size_t n_bytes,
			 const struct span *spans, size_t n, int32_t end)
{
	for (int32_t last = -2; last < end; last += 2) {
		for (int32_t offset = spans[0].offset; offset < end; offset += 2) {
			struct python_lines lines = {
				.table = table, .n_bytes = (uint32_t)n_bytes, .first_line = 2};

			torsh_python_line(how, &lines, last);
			assert_int_equal(torsh_python_line(how, &lines, offset),
					 expected_at(spans, n, offset));
			assert_int_equal(torsh_python_line(how, &lines, -1), 2);
		}
	}
}

#define EXPECT_LINES(how, table, end, ...)                                                     \
	do {                                                                                   \
		static const struct span spans[] = {__VA_ARGS__};                              \
		expect_lines(how, table, sizeof(table), spans, sizeof(spans) / sizeof(*spans), \
			     (end));                                                           \
	} while (0)

static void lines_are_those_of_lnotab(void **state)
{
	(void)state;
	EXPECT_LINES(CPYTHON_LNOTAB, lnotab, 46, {0, 3}, {2, 4}, {4, 5}, {6, 4}, {10, 6}, {20, 7},
		     {22, 6}, {30, 11}, {42, 12});
}

static void lines_are_those_of_pairs(void **state)
{
	(void)state;
	EXPECT_LINES(CPYTHON_LINE_PAIRS, pairs, 44, {0, 3}, {2, 4}, {4, 5}, {6, 4}, {10, 6},
		     {20, 7}, {22, 6}, {30, 11}, {34, 12}, {38, 11});
}

static void lines_are_those_of_locations(void **state)
{
	(void)state;
	EXPECT_LINES(CPYTHON_LOCATIONS, locations, 74, {0, 2}, {2, 3}, {4, 4}, {6, 5}, {8, 4},
		     {14, 6}, {34, 7}, {36, 6}, {52, 11}, {56, 12}, {60, 0}, {62, 11}, {68, 0});
}

static void pairs_may_have_no_line(void **state)
{
	static const uint8_t table[] = {4, 1, 2, 128, 254, 127, 0, 100, 6, 0};

	(void)state;
	EXPECT_LINES(CPYTHON_LINE_PAIRS, table, 266, {0, 3}, {4, 0}, {6, 130}, {260, 230});
}

static void numbers_of_lines_may_be_long(void **state)
{
	/*
	 * NO_COLUMNS, 2 units: +1000 (2000 = 0b11111_010000); LONG, 1 unit: -70 and four more
	 * numbers; NO_COLUMNS: +1.
	 */
	static const uint8_t table[] = {0xe9, 0x50, 0x1f, 0xf0, 0x4d, 0x02,
					0x00, 0x01, 0x01, 0xe8, 0x02};

	(void)state;
	EXPECT_LINES(CPYTHON_LOCATIONS, table, 8, {0, 1002}, {4, 932}, {6, 933});
}

/* Copies that end where the table is cut, at a page that can't be read. */
static void cut_tables_are_not_read_beyond_their_end(void **state)
{
	static const struct {
		enum cpython_lines how;
		const uint8_t *table;
		size_t n_bytes;
	} tables[] = {
		{CPYTHON_LNOTAB, lnotab, sizeof(lnotab)},
		{CPYTHON_LINE_PAIRS, pairs, sizeof(pairs)},
		{CPYTHON_LOCATIONS, locations, sizeof(locations)},
	};

	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *page = mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(mprotect(page + page_bytes, page_bytes, PROT_NONE), 0);
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		for (size_t n = 0; n < tables[i].n_bytes; n++) {
			uint8_t *cut = page + page_bytes - n;
			struct python_lines lines = {
				.table = cut, .n_bytes = (uint32_t)n, .first_line = 2};

			memcpy(cut, tables[i].table, n);
			for (int32_t offset = 0; offset < 100; offset += 2)
				torsh_python_line(tables[i].how, &lines, offset);
		}
	}
	munmap(page, 2 * page_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_those_of_lnotab),
		cmocka_unit_test(lines_are_those_of_pairs),
		cmocka_unit_test(lines_are_those_of_locations),
		cmocka_unit_test(pairs_may_have_no_line),
		cmocka_unit_test(numbers_of_lines_may_be_long),
		cmocka_unit_test(cut_tables_are_not_read_beyond_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
