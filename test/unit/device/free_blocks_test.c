/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The free blocks of an allocator, and its private pools, by events made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tools/device/owners/captures.h"
#include "tools/device/owners/device_owners.h"

#define MIB (UINT64_C(1) << 20)
#define FIRST (UINT64_C(1) << 40)
#define SECOND (FIRST + 20 * MIB) /* adjacent, and yet another segment */
#define PAGES (UINT64_C(1) << 41)

static struct device_blocks blocks;
static struct captures captures;
static struct recorded_process process; /* without labels */

static int setup(void **state)
{
	(void)state;
	torsh_device_blocks_create(&blocks);
	captures = (struct captures){0};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	torsh_device_blocks_destroy(&blocks);
	torsh_captures_free(&captures);
	return 0;
}

static void give(const struct event *event)
{
	struct device_origin origin = {.thread = 1};

	torsh_device_blocks_take(&blocks, event, &origin);
	torsh_captures_see(&captures, &process, &blocks, event);
}

static void reserve(uint64_t address, uint64_t bytes)
{
	give(&(struct event){
		.id = EVENT_DEVICE_ALLOC,
		.device_alloc = {.kind = BLOCK_DEVICE, .address = address, .bytes = bytes}});
}

static void map_page(uint64_t address, uint64_t handle, uint64_t bytes)
{
	give(&(struct event){
		.id = EVENT_DEVICE_ALLOC,
		.device_alloc = {.kind = BLOCK_PHYSICAL, .address = handle, .bytes = bytes}});
	give(&(struct event){.id = EVENT_DEVICE_ALLOC,
			     .device_alloc = {.kind = BLOCK_MAPPING,
					      .address = address,
					      .bytes = bytes,
					      .handle = handle}});
}

static void tensor(uint64_t address, uint64_t bytes, bool is_free)
{
	give(&(struct event){
		.id = EVENT_TENSOR,
		.tensor = {
			.address = address, .bytes = bytes, .is_free = is_free, .device = 1 << 8}});
}

static void expect(bool wants_private, uint64_t n_ordinals, uint64_t n, uint64_t bytes,
		   uint64_t largest_bytes)
{
	struct free_blocks found = torsh_free_blocks(
		&blocks, &(struct free_blocks_choice){.is_managed = blocks.is_managed,
						      .is_private = captures.is_private,
						      .n_private = captures.n,
						      .wants_private = wants_private,
						      .n_ordinals = n_ordinals});

	assert_int_equal(found.n, n);
	assert_int_equal(found.bytes, bytes);
	assert_int_equal(found.largest_bytes, largest_bytes);
}

static void free_blocks_lie_between_tensors(void **state)
{
	(void)state;
	reserve(FIRST, 20 * MIB);
	expect(false, UINT64_MAX, 0, 0, 0); /* no allocator's, as long as it has no tensor */
	tensor(FIRST + 2 * MIB, 3 * MIB, false);
	tensor(FIRST + 5 * MIB, MIB, false);
	tensor(FIRST + 13 * MIB, 7 * MIB, false);
	expect(false, UINT64_MAX, 2, 9 * MIB, 7 * MIB);
	tensor(FIRST + 5 * MIB, MIB, true);
	expect(false, UINT64_MAX, 2, 10 * MIB, 8 * MIB);
	tensor(FIRST + 13 * MIB, 7 * MIB, true);
	expect(false, UINT64_MAX, 2, 17 * MIB, 15 * MIB);
}

static void segments_are_not_joined_and_pages_are(void **state)
{
	(void)state;
	reserve(FIRST, 20 * MIB);
	reserve(SECOND, 20 * MIB);
	tensor(FIRST, 15 * MIB, false);
	tensor(SECOND + 18 * MIB, 2 * MIB, false);
	expect(false, UINT64_MAX, 2, 23 * MIB, 18 * MIB);
	/* Without what was reserved last. */
	expect(false, 1, 1, 5 * MIB, 5 * MIB);
	map_page(PAGES, 1, 20 * MIB);
	map_page(PAGES + 20 * MIB, 2, 20 * MIB);
	tensor(PAGES + 4 * MIB, MIB, false);
	tensor(PAGES + 19 * MIB, 2 * MIB, false);
	expect(false, UINT64_MAX, 5, 60 * MIB, 19 * MIB);
}

static void what_a_capture_reserves_is_private(void **state)
{
	(void)state;
	reserve(FIRST, 20 * MIB);
	tensor(FIRST, MIB, false);
	captures.n_open = 1;
	reserve(SECOND, 20 * MIB);
	tensor(SECOND, 4 * MIB, false);
	captures.n_open = 0;
	tensor(SECOND, 4 * MIB, true);
	expect(false, UINT64_MAX, 1, 19 * MIB, 19 * MIB);
	expect(true, UINT64_MAX, 1, 20 * MIB, 20 * MIB);
}

static void fragmentation_is_what_no_single_request_gets(void **state)
{
	struct free_blocks none = {0}, one = {.n = 1, .bytes = 8, .largest_bytes = 8},
			   four = {.n = 4, .bytes = 8, .largest_bytes = 2};

	(void)state;
	assert_true(torsh_free_blocks_fragmentation(&none) == 0);
	assert_true(torsh_free_blocks_fragmentation(&one) == 0);
	assert_true(torsh_free_blocks_fragmentation(&four) == 0.75);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(free_blocks_lie_between_tensors, setup, teardown),
		cmocka_unit_test_setup_teardown(segments_are_not_joined_and_pages_are, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_a_capture_reserves_is_private, setup,
						teardown),
		cmocka_unit_test(fragmentation_is_what_no_single_request_gets),
	};

	return cmocka_run_group_tests_name("free_blocks", tests, NULL, NULL);
}
