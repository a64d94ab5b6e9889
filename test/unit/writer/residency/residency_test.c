/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* When an account of resident memory is due, of this process as if it were a target. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/writer/input/process_info.h"
#include "tools/writer/input/target.h"
#include "tools/writer/residency/memory_look.h"
#include "tools/writer/residency/residency.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

/* An account of so many bytes, taken at that time. */
static struct residency residency_of(uint64_t bytes, uint64_t last_ns)
{
	return (struct residency){
		.accounts = {[ACCOUNT_LAST] = {.status_bytes = bytes, .rss_bytes = bytes}},
		.is_there = {[ACCOUNT_LAST] = true},
		.last_ns = last_ns,
	};
}

static bool is_due(uint64_t rss_bytes, struct residency *residency, uint64_t now_ns)
{
	struct target target = {.state = {.rss_bytes = rss_bytes}, .residency = residency};
	struct residency_pace pace = {0};

	return torsh_residency_is_due(&target, &pace, now_ns);
}

static void it_is_due_at_first_and_when_the_set_has_grown_by_a_twentieth(void **state)
{
	struct residency residency = residency_of(100 * MIB, SECOND);

	(void)state;
	assert_false(is_due(0, NULL, SECOND));
	assert_true(is_due(MIB, NULL, SECOND));
	assert_false(is_due(104 * MIB, &residency, SECOND + 1));
	assert_true(is_due(105 * MIB, &residency, SECOND + 1));
	residency = residency_of(10 * MIB, SECOND);
	assert_false(is_due(13 * MIB, &residency, SECOND + 1));
	assert_true(is_due(14 * MIB, &residency, SECOND + 1));
}

static void a_smaller_rise_and_a_fall_are_due_later(void **state)
{
	struct residency residency = residency_of(100 * MIB, SECOND);

	(void)state;
	assert_true(is_due(101 * MIB, &residency, 6 * SECOND));
	assert_false(is_due(80 * MIB, &residency, SECOND + SECOND / 2));
	assert_true(is_due(80 * MIB, &residency, 2 * SECOND));
	assert_false(is_due(99 * MIB, &residency, 100 * SECOND));
}

static void none_is_due_after_the_exit_or_a_refusal(void **state)
{
	struct residency residency = residency_of(100 * MIB, SECOND);

	(void)state;
	residency.has_end = true;
	assert_false(is_due(300 * MIB, &residency, 9 * SECOND));
	residency = residency_of(100 * MIB, SECOND);
	residency.error = 13;
	assert_false(is_due(300 * MIB, &residency, 9 * SECOND));
}

static void none_is_due_before_the_pace_allows_it(void **state)
{
	struct target target = {.state = {.rss_bytes = 500 * MIB}};
	struct residency_pace pace = {.next_ns = 3 * SECOND};

	(void)state;
	assert_false(torsh_residency_is_due(&target, &pace, 3 * SECOND - 1));
	assert_true(torsh_residency_is_due(&target, &pace, 3 * SECOND));
}

static bool is_torn(uint64_t before, uint64_t seen, uint64_t after)
{
	struct memory_area areas[] = {{.rss_bytes = seen / 4}, {.rss_bytes = seen - seen / 4}};
	const struct memory_look look = {.areas = {.items = areas, .n = 2},
					 .status = {.rss_bytes = before}};

	return torsh_memory_look_is_torn(&look, after);
}

static void a_look_is_torn_if_it_has_more_or_less_than_was_resident(void **state)
{
	(void)state;
	assert_false(is_torn(200 * MIB, 200 * MIB, 200 * MIB));
	/* 200 MiB were freed, and as much mapped where it had not looked yet. */
	assert_true(is_torn(225 * MIB, 358 * MIB, 225 * MIB));
	assert_true(is_torn(225 * MIB, 90 * MIB, 225 * MIB));
	/* It grew, or fell, meanwhile. */
	assert_false(is_torn(100 * MIB, 150 * MIB, 200 * MIB));
	assert_false(is_torn(200 * MIB, 110 * MIB, 100 * MIB));
	/* It ended; or nothing is known of before. */
	assert_true(is_torn(200 * MIB, 0, 0));
	assert_false(is_torn(0, 100 * MIB, 100 * MIB));
}

static void the_look_at_the_exit_is_ended_by_nobody_else(void **state)
{
	struct residency residency = residency_of(100 * MIB, SECOND);

	(void)state;
	residency.is_looking = true;
	assert_true(is_due(100 * MIB, &residency, SECOND + 1));
	residency.is_at_exit = true;
	assert_false(is_due(100 * MIB, &residency, 9 * SECOND));
}

/* Each line of smaps, and its sum, against the kernel's own sum. */
static void a_look_has_the_sums_of_the_kernel(void **state)
{
	struct target target = {.pid = 0, .status_fd = -1};
	struct memory_look look;
	const size_t size = 300 * 4096;
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile char zero;
	uint64_t bytes = 0;
	int ready[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	madvise(pages, size, MADV_NOHUGEPAGE);
	for (int i = 0; i < 100; i++)
		pages[i * 4096] = 1;
	for (int i = 200; i < 250; i++)
		zero = pages[i * 4096]; /* the page of zeros, which is not resident */
	(void)zero;
	child = fork();
	if (!child) {
		for (int i = 0; i < 30; i++)
			pages[i * 4096] = 2;
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], (char[1]){0}, 1), 0);
	target.pid = child;
	assert_int_equal(torsh_memory_look(&look, &target, false), 0);
	for (uint32_t i = 0; i < look.areas.n; i++) {
		const struct memory_area *area = &look.areas.items[i];
		const struct looked_pages *found = &look.pages[i];
		uint64_t begin = (uintptr_t)pages, shared = 0, alone = 0;

		bytes += area->rss_bytes;
		assert_int_equal(found->bytes, found->expected_bytes);
		for (uint32_t k = found->first; k < found->first + found->n; k++) {
			const struct page_run *run = &look.runs.items[k];

			if (run->begin >= begin && run->end <= begin + size)
				*(run->is_shared ? &shared : &alone) += run->end - run->begin;
		}
		if (area->begin <= begin && area->end >= begin + size) {
			assert_int_equal(alone, 30 * 4096);
			assert_int_equal(shared, 70 * 4096);
		}
	}
	assert_true(bytes > 100 * 4096);
	torsh_memory_look_free(&look);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(pages, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_due_at_first_and_when_the_set_has_grown_by_a_twentieth),
		cmocka_unit_test(a_smaller_rise_and_a_fall_are_due_later),
		cmocka_unit_test(none_is_due_after_the_exit_or_a_refusal),
		cmocka_unit_test(none_is_due_before_the_pace_allows_it),
		cmocka_unit_test(the_look_at_the_exit_is_ended_by_nobody_else),
		cmocka_unit_test(a_look_is_torn_if_it_has_more_or_less_than_was_resident),
		cmocka_unit_test(a_look_has_the_sums_of_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
