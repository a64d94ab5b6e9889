/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is counted of samples of faults: by line, and only at inherited pages. */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/base/memory.h"
#include "tools/writer/input/target.h"
#include "tools/writer/residency/breaks/page_breaks.h"

#define RING_BYTES (1u << 20)
#define PAGE_BYTES 4096u

#if defined(__x86_64__)
#define N_REGISTERS 7u
#define NUMBER_OF_IP 2u
#else
#define N_REGISTERS 12u
#define NUMBER_OF_IP 11u
#endif

static struct {
	_Alignas(PAGE_BYTES) char page[PAGE_BYTES];
	unsigned char data[RING_BYTES];
} ring;

static struct page_run runs[] = {{0x10000, 0x20000, true}, {0x40000, 0x41000, true}};
static const struct page_runs inherited = {.items = runs, .n = 2};

static struct program_tables tables;
static struct target target;
static struct page_breaks breaks;

static int set_up(void **state)
{
	(void)state;
	memset(&ring, 0, sizeof(ring));
	target = (struct target){
		.state = {.tables = &tables, .code = {.table = &tables.code}},
	};
	breaks = (struct page_breaks){
		.is_open = true,
		.every = 3,
		.n_until_rarer = UINT64_MAX,
		.samples = {.fd = -1,
			    .ring = &ring,
			    .ring_bytes = RING_BYTES,
			    .page_bytes = PAGE_BYTES,
			    .record = torsh_memory_new(1, 65536)},
	};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(breaks.samples.record);
	free(breaks.sums.lines);
	return 0;
}

static void put_words(const uint64_t *words, size_t n)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)ring.page;

	memcpy(ring.data + page->data_head, words, n * sizeof(*words));
	page->data_head += n * sizeof(*words);
}

static void put_sample(uint64_t address)
{
	uint64_t words[1 + 4 + N_REGISTERS + 1] = {[3] = address, [4] = 2};
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(words)};

	memcpy(words, &header, sizeof(header));
	words[5 + NUMBER_OF_IP] = 0x7f0000001234;
	put_words(words, sizeof(words) / sizeof(*words));
}

static void put_lost(uint64_t n)
{
	uint64_t words[3] = {[2] = n};
	struct perf_event_header header = {.type = PERF_RECORD_LOST, .size = sizeof(words)};

	memcpy(words, &header, sizeof(header));
	put_words(words, 3);
}

static void nothing_is_counted_as_nothing(void **state)
{
	const struct page_runs none = {0};

	(void)state;
	torsh_page_breaks_take(&breaks, &target, &inherited);
	assert_int_equal(breaks.sums.n_lines + breaks.sums.samples + breaks.sums.lost, 0);
	put_sample(0x10000);
	torsh_page_breaks_take(&breaks, &target, &none);
	assert_int_equal(breaks.sums.n_lines, 0);
	assert_int_equal(breaks.n_taken, 1);
	breaks.is_open = false;
	put_sample(0x10000);
	torsh_page_breaks_take(&breaks, &target, &inherited);
	assert_int_equal(breaks.n_taken, 1);
}

static void faults_at_inherited_pages_are_counted(void **state)
{
	static const uint64_t inside[] = {0x10000, 0x1ffff, 0x40fff};
	static const uint64_t outside[] = {0, 0xffff, 0x20000, 0x3ffff, 0x41000, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++)
		put_sample(outside[i]);
	for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++)
		put_sample(inside[i]);
	put_lost(40);
	torsh_page_breaks_take(&breaks, &target, &inherited);
	assert_int_equal(breaks.sums.samples, 3);
	assert_int_equal(breaks.sums.pages, 9);
	assert_int_equal(breaks.sums.lost, 40);
	assert_int_equal(breaks.n_taken, 9);
	/* At no line that is known. */
	assert_int_equal(breaks.sums.n_lines, 1);
	assert_int_equal(breaks.sums.lines[0].stack, 0);
	assert_int_equal(breaks.sums.lines[0].pages, 9);
}

/* Those for which there is no room are at no line: nothing is missing in the sums. */
static void more_lines_than_there_is_room_for_are_one(void **state)
{
	uint64_t pages = 0, samples = 0;

	(void)state;
	breaks.sums.lines = torsh_memory_new(BROKEN_LINES_MAX, sizeof(*breaks.sums.lines));
	breaks.sums.capacity = BROKEN_LINES_MAX;
	for (uint32_t i = 0; i < BROKEN_LINES_MAX; i++)
		breaks.sums.lines[breaks.sums.n_lines++].stack = i + 1;
	for (int i = 0; i < 5; i++)
		put_sample(0x10000);
	torsh_page_breaks_take(&breaks, &target, &inherited);
	assert_int_equal(breaks.sums.n_lines, BROKEN_LINES_MAX + 1);
	for (uint32_t i = 0; i < breaks.sums.n_lines; i++) {
		pages += breaks.sums.lines[i].pages;
		samples += breaks.sums.lines[i].samples;
	}
	assert_int_equal(samples, 5);
	assert_int_equal(pages, breaks.sums.pages);
}

static void it_ends_without_having_begun(void **state)
{
	struct page_breaks none = {.error = 13};

	(void)state;
	torsh_page_breaks_take(&none, &target, &inherited);
	torsh_page_breaks_end(&none);
	torsh_page_breaks_end(&none);
	assert_int_equal(none.error, 13);
	assert_int_equal(none.sums.n_lines, 0);
}

#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RING(nothing_is_counted_as_nothing),
		WITH_RING(faults_at_inherited_pages_are_counted),
		WITH_RING(more_lines_than_there_is_room_for_are_one),
		WITH_RING(it_ends_without_having_begun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
