/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lines of made-up code objects in this process's own memory, and of damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/writer/residency/breaks/code_lines.h"

#define N_CODES 4200u
#define CODE_STRIDE 256u
#define CODE_BYTES 192u /* from the object's begin to its instructions */
#define N_UNITS 10u
#define CODE_TYPE UINT64_C(0x7e0000001230)
#define FIRST_LINE 40u
#define AREA_BYTES ((N_CODES + 64) * CODE_STRIDE)

/* Where these objects have what is read of them. */
enum { TABLE = 64, FIRST = 72, BYTES_LENGTH = 16, BYTES_DATA = 32 };

/* Two units of line 41, one without a line, seven of line 43. */
static const uint8_t lines_of_code[] = {0xe9, 0x02, 0xf8, 0xee, 0x04};

static char *area;
static struct {
	uint64_t head[4];
	uint8_t data[sizeof(lines_of_code)];
} table = {.head = {1, 1, sizeof(lines_of_code)}};

static struct python_layout layout = {
	.is_known = true,
	.code_type = CODE_TYPE,
	.at = {.instruction = CPYTHON_POINTER,
	       .lines = CPYTHON_LOCATIONS,
	       .code_bytes = CODE_BYTES,
	       .code_lines = TABLE,
	       .code_first_line = FIRST,
	       .code_name = 80,
	       .code_file = 88,
	       .bytes_length = BYTES_LENGTH,
	       .bytes_data = BYTES_DATA},
};

static struct code_lines lines;

static uint64_t *code(uint32_t number)
{
	return (uint64_t *)(area + (size_t)number * CODE_STRIDE);
}

static uint64_t begin_of(uint32_t number)
{
	return (uint64_t)(uintptr_t)code(number) + CODE_BYTES;
}

static void make_code(uint32_t number)
{
	torsh_code_lines_settle(&lines);
	code(number)[0] = 1;
	code(number)[1] = CODE_TYPE;
	code(number)[2] = N_UNITS;
	code(number)[TABLE / 8] = (uint64_t)(uintptr_t)&table;
	code(number)[FIRST / 8] = FIRST_LINE;
}

/* The area follows a page that can't be read. */
static int set_up(void **state)
{
	(void)state;
	memcpy(table.data, lines_of_code, sizeof(lines_of_code));
	table.head[2] = sizeof(lines_of_code);
	area = mmap(NULL, 4096 + AREA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return -1;
	area += 4096;
	mprotect(area, AREA_BYTES, PROT_READ | PROT_WRITE);
	torsh_code_lines_create(&lines, getpid(), &layout);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	torsh_code_lines_destroy(&lines);
	return munmap(area - 4096, 4096 + AREA_BYTES);
}

static const struct code_object *find(uint64_t word, uint32_t *line)
{
	return torsh_code_lines_find(&lines, &word, 1, line);
}

static void check_line(uint64_t word, uint32_t expected)
{
	uint32_t line = 1;

	assert_non_null(find(word, &line));
	assert_int_equal(line, expected);
}

static void check_none(uint64_t word)
{
	uint32_t line;

	assert_null(find(word, &line));
}

static void the_word_behind_an_instruction_has_its_line(void **state)
{
	uint32_t line;

	(void)state;
	make_code(0); /* at the begin of what can be read */
	make_code(50);
	for (uint32_t number = 0; number <= 50; number += 50) {
		uint64_t begin = begin_of(number);

		check_line(begin + 2, 41);
		check_line(begin + 4, 41);
		check_line(begin + 6, 0);
		check_line(begin + 8, 43);
		check_line(begin + 20, 43);
		assert_int_equal(find(begin + 2, &line)->begin, begin);
		assert_int_equal(find(begin + 2, &line)->first_line, FIRST_LINE);
	}
	assert_int_equal(lines.n, 2);
}

static void other_words_are_none(void **state)
{
	uint64_t begin;

	(void)state;
	make_code(50);
	begin = begin_of(50);
	check_none(0);
	check_none(4095);
	check_none(UINT64_MAX - 1);
	check_none(UINT64_C(1) << 47);
	check_none((uint64_t)(uintptr_t)area - 64); /* can't be read */
	check_none(begin); /* where the first instruction begins */
	check_none(begin + 3);
	check_none(begin + 2 * N_UNITS + 2);
	check_line(begin + 2, 41);
	check_none(begin);
	check_none(begin + 2 * N_UNITS + 2);
}

static void the_first_word_that_is_one_counts(void **state)
{
	uint64_t words[4];
	uint32_t line;

	(void)state;
	make_code(50);
	make_code(60);
	words[0] = 7;
	words[1] = begin_of(55);
	words[2] = begin_of(60) + 8;
	words[3] = begin_of(50) + 2;
	assert_int_equal(torsh_code_lines_find(&lines, words, 4, &line)->begin, begin_of(60));
	assert_int_equal(line, 43);
	assert_null(torsh_code_lines_find(&lines, words, 2, &line));
	assert_null(torsh_code_lines_find(&lines, words, 0, &line));
}

static void memory_is_read_anew_once_it_was_settled(void **state)
{
	(void)state;
	make_code(50);
	check_line(begin_of(50) + 2, 41);
	make_code(60);
	torsh_code_lines_settle(&lines);
	check_line(begin_of(60) + 2, 41);
	/* What was found is known without memory. */
	memset(area, 0, AREA_BYTES);
	torsh_code_lines_settle(&lines);
	check_line(begin_of(50) + 8, 43);
}

static void damaged_objects_have_no_line(void **state)
{
	static const uint64_t lengths[] = {0, UINT64_MAX, (1u << 20) + 1};

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		table.head[2] = lengths[i];
		make_code(50 + 10 * i);
		check_line(begin_of(50 + 10 * i) + 2, 0);
	}
	table.head[2] = sizeof(lines_of_code);
	make_code(90);
	code(90)[TABLE / 8] = 8; /* nothing is there */
	check_line(begin_of(90) + 2, 0);
	make_code(110);
	code(110)[2] = UINT64_MAX; /* no number of instructions */
	check_none(begin_of(110) + 2);
	make_code(130);
	code(130)[2] = 0;
	check_none(begin_of(130) + 2);
	/* A table of lines whose entries go on behind its end. */
	memset(table.data, 0x7f, sizeof(table.data));
	make_code(150);
	check_line(begin_of(150) + 2, 0);
}

static void more_code_than_there_is_room_for_is_unknown(void **state)
{
	uint32_t n = 0, line;

	(void)state;
	for (uint32_t i = 0; i < N_CODES; i++)
		make_code(i);
	for (uint32_t i = 0; i < N_CODES; i++)
		n += find(begin_of(i) + 2, &line) != NULL;
	assert_int_equal(n, 4096);
	check_line(begin_of(0) + 2, 41);
}

static void without_a_layout_all_is_unknown(void **state)
{
	struct python_layout other = layout;

	(void)state;
	make_code(50);
	other.at.instruction = CPYTHON_UNITS; /* before 3.11 */
	for (int i = 0; i < 3; i++) {
		torsh_code_lines_destroy(&lines);
		torsh_code_lines_create(&lines, getpid(), &other);
		check_none(begin_of(50) + 2);
		other = layout;
		other.is_known = i == 1;
		other.code_type = 0;
	}
}

#define WITH_AREA(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_AREA(the_word_behind_an_instruction_has_its_line),
		WITH_AREA(other_words_are_none),
		WITH_AREA(the_first_word_that_is_one_counts),
		WITH_AREA(memory_is_read_anew_once_it_was_settled),
		WITH_AREA(damaged_objects_have_no_line),
		WITH_AREA(more_code_than_there_is_room_for_is_unknown),
		WITH_AREA(without_a_layout_all_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
