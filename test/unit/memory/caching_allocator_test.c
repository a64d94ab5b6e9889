/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The model of the caching allocator, against PyTorch's own numbers and its own invariants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tools/memory/allocator/caching_allocator.h"

#define MIB (UINT64_C(1) << 20)
#define N_RANDOM 4000
#define LIVE_MAX 200

struct recorded_call {
	uint64_t bytes;
	int block;
	uint64_t allocated, reserved;
};

#include "test/unit/memory/recorded_calls.h"

static struct caching_allocator allocator;

static void begin(const char *text, uint64_t capacity_bytes)
{
	struct allocator_settings settings;
	const char *at;

	torsh_allocator_settings_default(&settings);
	assert_int_equal(torsh_allocator_settings_parse(&settings, text, &at), 0);
	torsh_caching_allocator_create(&allocator, &settings, capacity_bytes);
}

static void repeat(const char *settings, const struct recorded_call *calls, size_t n)
{
	struct allocator_block *blocks[100];

	begin(settings, 0);
	for (size_t i = 0; i < n; i++) {
		const struct recorded_call *call = &calls[i];

		if (call->bytes)
			blocks[call->block] =
				torsh_caching_allocator_alloc(&allocator, call->bytes);
		else if (call->block >= 0)
			torsh_caching_allocator_free(&allocator, blocks[call->block]);
		else
			torsh_caching_allocator_release(&allocator);
		assert_int_equal(allocator.allocated_bytes, call->allocated);
		assert_int_equal(allocator.reserved_bytes, call->reserved);
	}
	torsh_caching_allocator_destroy(&allocator);
}

#define REPEAT(settings, calls) repeat(settings, calls, sizeof(calls) / sizeof(*(calls)))

static void what_pytorch_reserved_is_reserved(void **state)
{
	(void)state;
	REPEAT("", native_calls);
	REPEAT("expandable_segments:True", expandable_calls);
	REPEAT("max_split_size_mb:24", split_calls);
	REPEAT("roundup_power2_divisions:[2:1,16:4,>:8]", divisions_calls);
}

/* ---- invariants ------------------------------------------------------------------------------ */

static void assert_set(const struct block_set *set, bool is_mapped)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct allocator_block *block = set->items[i], *next = block->next;

		assert_false(block->is_allocated);
		assert_int_equal(block->is_mapped, is_mapped);
		/* Free neighbours are merged, and blocks of a segment leave no gap. */
		assert_true(!next || next->is_allocated || next->is_mapped != is_mapped);
		assert_true(!next || next->address == block->address + block->size);
		assert_true(!next || next->previous == block);
		assert_int_equal(torsh_block_set_find(set, block->size, block->address), i);
	}
}

static uint64_t sum_free(const struct caching_allocator *of)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < of->small.free.n; i++)
		sum += of->small.free.items[i]->size;
	for (size_t i = 0; i < of->large.free.n; i++)
		sum += of->large.free.items[i]->size;
	return sum;
}

static void assert_valid(void)
{
	assert_set(&allocator.small.free, true);
	assert_set(&allocator.large.free, true);
	assert_set(&allocator.small.unmapped, false);
	assert_set(&allocator.large.unmapped, false);
	assert_int_equal(allocator.reserved_bytes,
			 allocator.allocated_bytes + sum_free(&allocator));
}

static uint64_t random_size(unsigned *seed)
{
	static const uint64_t sizes[] = {512, MIB / 2, 2 * MIB, 12 * MIB, 40 * MIB};

	return 1 + (uint64_t)rand_r(seed) % sizes[(unsigned)rand_r(seed) % 5];
}

/* Allocate and free at random, then free all: nothing stays reserved. */
static void run_random(const char *settings, uint64_t capacity_bytes, unsigned seed)
{
	struct allocator_block *live[LIVE_MAX];
	size_t n = 0, n_failed = 0;

	begin(settings, capacity_bytes);
	for (int i = 0; i < N_RANDOM; i++) {
		if (n == LIVE_MAX || (n && rand_r(&seed) % 100 < 48)) {
			size_t at = (size_t)rand_r(&seed) % n;

			torsh_caching_allocator_free(&allocator, live[at]);
			live[at] = live[--n];
		} else {
			live[n] = torsh_caching_allocator_alloc(&allocator, random_size(&seed));
			n_failed += !live[n];
			n += live[n] != NULL;
		}
		assert_valid();
		assert_true(!capacity_bytes || allocator.reserved_bytes <= capacity_bytes);
	}
	assert_int_equal(n_failed > 0, capacity_bytes > 0);
	while (n)
		torsh_caching_allocator_free(&allocator, live[--n]);
	torsh_caching_allocator_release(&allocator);
	assert_valid();
	assert_int_equal(allocator.reserved_bytes, 0);
	torsh_caching_allocator_destroy(&allocator);
}

static void random_calls_leave_it_valid(void **state)
{
	static const char *const settings[] = {
		"", "expandable_segments:True", "max_split_size_mb:20",
		"roundup_power2_divisions:4,garbage_collection_threshold:0.5"};

	(void)state;
	for (unsigned i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		run_random(settings[i], 0, 1 + i);
		run_random(settings[i], 300 * MIB, 100 + i);
	}
}

/* ---- without memory -------------------------------------------------------------------------- */

static void cached_segments_are_released_before_memory_runs_out(void **state)
{
	struct allocator_block *block, *other;

	(void)state;
	begin("", 100 * MIB);
	block = torsh_caching_allocator_alloc(&allocator, 60 * MIB);
	torsh_caching_allocator_free(&allocator, block);
	block = torsh_caching_allocator_alloc(&allocator, 80 * MIB);
	assert_non_null(block);
	assert_int_equal(allocator.reserved_bytes, 80 * MIB);
	other = torsh_caching_allocator_alloc(&allocator, 30 * MIB);
	assert_null(other);
	assert_int_equal(allocator.missing_bytes, 10 * MIB);
	assert_int_equal(allocator.reserved_peak_bytes, 80 * MIB);
	torsh_caching_allocator_destroy(&allocator);
}

static void what_was_not_used_for_long_is_collected_above_the_threshold(void **state)
{
	struct allocator_block *blocks[3];

	(void)state;
	begin("garbage_collection_threshold:0.5", 200 * MIB);
	for (int i = 0; i < 3; i++)
		blocks[i] = torsh_caching_allocator_alloc(&allocator, (30 + (uint64_t)i) * MIB);
	for (int i = 0; i < 3; i++)
		torsh_caching_allocator_free(&allocator, blocks[i]);
	/* 94 MiB are below the threshold: nothing is released for the first one. */
	blocks[0] = torsh_caching_allocator_alloc(&allocator, 40 * MIB);
	assert_int_equal(allocator.reserved_bytes, 134 * MIB);
	blocks[1] = torsh_caching_allocator_alloc(&allocator, 44 * MIB);
	assert_true(allocator.reserved_bytes < 134 * MIB);
	torsh_caching_allocator_destroy(&allocator);
}

/* ---- settings -------------------------------------------------------------------------------- */

static void settings_are_those_of_pytorch(void **state)
{
	struct allocator_settings settings;
	const char *at;

	(void)state;
	torsh_allocator_settings_default(&settings);
	assert_int_equal(torsh_allocator_settings_parse(
				 &settings,
				 "expandable_segments:True,max_split_size_mb:64,"
				 "garbage_collection_threshold:0.8,pinned_use_host_register:True,"
				 "roundup_power2_divisions:[256:1,512:2,>:4],backend:native",
				 &at),
			 0);
	assert_true(settings.is_expandable && settings.is_native);
	assert_int_equal(settings.max_split_bytes, 64 * MIB);
	assert_true(settings.collection_threshold > 0.79 && settings.collection_threshold < 0.81);
	assert_int_equal(settings.roundup_divisions[0], 1);
	assert_int_equal(settings.roundup_divisions[8], 1);
	assert_int_equal(settings.roundup_divisions[9], 2);
	assert_int_equal(settings.roundup_divisions[15], 4);
	assert_int_equal(torsh_allocator_settings_parse(&settings, "backend:cudaMallocAsync", &at),
			 0);
	assert_false(settings.is_native);
}

static void malformed_settings_are_refused_at_their_key(void **state)
{
	static const char *const texts[] = {"nothing",
					    ":1",
					    "max_split_size_mb:",
					    "max_split_size_mb:x",
					    "max_split_size_mb:19",
					    "max_split_size_mb:99999999999999999999",
					    "expandable_segments:yes",
					    "garbage_collection_threshold:2",
					    "roundup_power2_divisions:[256]",
					    "roundup_power2_divisions:[256:1"};
	struct allocator_settings settings;
	const char *at;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		torsh_allocator_settings_default(&settings);
		assert_int_equal(torsh_allocator_settings_parse(&settings, texts[i], &at), -22);
		assert_ptr_equal(at, texts[i]);
	}
	assert_int_equal(torsh_allocator_settings_parse(
				 &settings, "max_split_size_mb:20,expandable_segments:", &at),
			 -22);
	assert_string_equal(at, "expandable_segments:");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_pytorch_reserved_is_reserved),
		cmocka_unit_test(random_calls_leave_it_valid),
		cmocka_unit_test(cached_segments_are_released_before_memory_runs_out),
		cmocka_unit_test(what_was_not_used_for_long_is_collected_above_the_threshold),
		cmocka_unit_test(settings_are_those_of_pytorch),
		cmocka_unit_test(malformed_settings_are_refused_at_their_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
