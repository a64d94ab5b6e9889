/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A census of made-up pools and objects in this process's own memory, and of damaged ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/writer/census/census.h"

#define POOL_BYTES 16384u
#define HEADER_BYTES 48u
#define N_POOLS 32u
#define N_TYPES 450u
#define IS_TYPE (UINT64_C(1) << 31)

/* As in PyTypeObject, whose objects are made of types in a block of this size. */
struct model_type {
	_Alignas(16) uint64_t words[34];
	char name[16];
};

static struct model_type types[N_TYPES];
static char *pools;
static const _Atomic bool is_not_cancelled;

static uint64_t address_of(const void *object)
{
	return (uint64_t)(uintptr_t)object;
}

/* The first one is the type of all, and of itself. */
static int set_up(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < N_TYPES; i++) {
		snprintf(types[i].name, sizeof(types[i].name), "type%u", i);
		types[i].words[0] = 1;
		types[i].words[1] = address_of(&types[0]);
		types[i].words[3] = address_of(types[i].name);
		types[i].words[4] = 32;
		types[i].words[21] = i ? 0 : IS_TYPE;
	}
	return 0;
}

static int map_pools(void **state)
{
	(void)state;
	pools = mmap(NULL, (N_POOLS + 1) * POOL_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pools == MAP_FAILED)
		return -1;
	pools += -address_of(pools) % POOL_BYTES;
	return 0;
}

static int unmap_pools(void **state)
{
	(void)state;
	return munmap(pools, N_POOLS * POOL_BYTES);
}

static uint32_t *pool(uint32_t number)
{
	return (uint32_t *)(pools + (size_t)number * POOL_BYTES);
}

static uint64_t *block(uint32_t number, uint32_t block_bytes, uint32_t i)
{
	return (uint64_t *)((char *)pool(number) + HEADER_BYTES + (size_t)i * block_bytes);
}

/* A pool of which so many blocks were handed out, all in use and of that type; 0: of none. */
static void make_pool(uint32_t number, uint32_t block_bytes, uint32_t n, uint32_t type)
{
	uint32_t *header = pool(number);

	header[0] = n;
	header[9] = block_bytes / 16 - 1;
	header[10] = HEADER_BYTES + n * block_bytes;
	header[11] = POOL_BYTES - block_bytes;
	for (uint32_t i = 0; type && i < n; i++) {
		block(number, block_bytes, i)[0] = 1;
		block(number, block_bytes, i)[1] = address_of(&types[type]);
	}
}

static void free_block(uint32_t number, uint32_t block_bytes, uint32_t i)
{
	uint64_t *free = (uint64_t *)pool(number) + 1;

	block(number, block_bytes, i)[0] = *free;
	*free = address_of(block(number, block_bytes, i));
	pool(number)[0]--;
}

static int take(struct census *census, uint32_t n_pools)
{
	struct heap_range range = {address_of(pools), address_of(pools) + n_pools * POOL_BYTES};
	struct heap_ranges maps = {.items = &range, .n = 1};

	*census = (struct census){0};
	return torsh_census_take(census, getpid(), &maps, &is_not_cancelled);
}

static const struct census_row *row_of(const struct census *census, const char *name,
				       uint32_t block_bytes)
{
	for (uint32_t i = 0; i < census->n_rows; i++) {
		const struct census_row *row = &census->rows[i];

		if (row->block_bytes == block_bytes &&
		    (name ? row->type && !strcmp(census->names[row->type - 1], name) : !row->type))
			return row;
	}
	return NULL;
}

static void objects_are_counted_by_type_and_size(void **state)
{
	struct census census;

	(void)state;
	make_pool(0, 64, 100, 3);
	make_pool(1, 64, 50, 3);
	make_pool(2, 96, 7, 3);
	make_pool(3, 512, 31, 4); /* as many as there is room for */
	make_pool(4, 32, 10, 0);
	free_block(0, 64, 5);
	free_block(0, 64, 99);
	assert_int_equal(take(&census, N_POOLS), 0);
	assert_int_equal(row_of(&census, "type3", 64)->objects, 148);
	assert_int_equal(row_of(&census, "type3", 96)->objects, 7);
	assert_int_equal(row_of(&census, "type4", 512)->objects, 31);
	assert_int_equal(row_of(&census, NULL, 32)->objects, 10);
	assert_int_equal(census.n_rows, 4);
	assert_int_equal(census.n_names, 2);
	assert_int_equal(census.blocks, 196);
	assert_int_equal(census.objects, 186);
	assert_int_equal(census.bytes, 148 * 64 + 7 * 96 + 31 * 512 + 10 * 32);
	assert_int_equal(census.pool_bytes, 5 * POOL_BYTES);
	assert_int_equal(census.pools_changed, 0);
	assert_int_equal(census.rows[0].block_bytes, 512); /* with most bytes */
	torsh_census_free(&census);
}

static void nothing_has_no_rows(void **state)
{
	const struct heap_ranges none = {0};
	struct census census = {0};

	(void)state;
	assert_int_equal(torsh_census_take(&census, getpid(), &none, &is_not_cancelled), 0);
	assert_int_equal(census.blocks + census.pool_bytes + census.n_rows, 0);
	torsh_census_free(&census);
	/* Pages that were never touched, and a pool without blocks in use. */
	assert_int_equal(take(&census, N_POOLS), 0);
	assert_int_equal(census.n_rows + census.pools_changed, 0);
	torsh_census_free(&census);
	make_pool(0, 64, 1, 3);
	free_block(0, 64, 0);
	assert_int_equal(take(&census, N_POOLS), 0);
	assert_int_equal(census.blocks, 0);
	assert_int_equal(census.pool_bytes, POOL_BYTES);
	torsh_census_free(&census);
}

static void damaged_pools_are_left_out_and_counted(void **state)
{
	struct census census;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		make_pool(i, 64, 100, 3);
	pool(1)[0]++; /* one more in use than its list leaves */
	free_block(2, 64, 7);
	block(2, 64, 7)[0] = address_of(block(2, 64, 7)); /* a loop */
	free_block(3, 64, 7);
	block(3, 64, 7)[0] = address_of(block(2, 64, 1)); /* of another pool */
	assert_int_equal(take(&census, N_POOLS), 0);
	assert_int_equal(census.blocks, 100);
	assert_int_equal(census.pools_changed, 3);
	torsh_census_free(&census);
	pool(0)[9] = 32; /* larger than any size */
	assert_int_equal(take(&census, 1), 0);
	assert_int_equal(census.blocks + census.pools_changed, 0);
	torsh_census_free(&census);
}

/* What looks like an object and whose type is none. */
static void damaged_objects_have_no_type(void **state)
{
	struct census census;

	(void)state;
	make_pool(0, 64, 6, 3);
	block(0, 64, 1)[1] = 0;
	block(0, 64, 2)[1] = address_of(&types[3]) + 8;
	block(0, 64, 3)[1] = UINT64_C(0x7fffffffe000); /* hardly mapped */
	block(0, 64, 4)[1] = address_of(block(0, 64, 0)); /* an object */
	block(0, 64, 5)[0] = 0; /* no references */
	assert_int_equal(take(&census, 1), 0);
	assert_int_equal(row_of(&census, "type3", 64)->objects, 1);
	assert_int_equal(row_of(&census, NULL, 64)->objects, 5);
	assert_int_equal(census.objects, 1);
	torsh_census_free(&census);
}

/* Sums are of all; rows are those with most bytes. */
static void more_types_than_rows_are_in_the_sums(void **state)
{
	struct census census;
	uint32_t n = 0;

	(void)state;
	for (uint32_t number = 0; n < N_TYPES - 1; number++) {
		make_pool(number, 32, 300, 0);
		for (uint32_t i = 0; i < 300 && n < N_TYPES - 1; i++) {
			block(number, 32, i)[0] = 1;
			block(number, 32, i)[1] = address_of(&types[++n]);
		}
	}
	make_pool(10, 32, 300, 7);
	assert_int_equal(take(&census, N_POOLS), 0);
	assert_int_equal(census.n_rows, CENSUS_ROWS_MAX);
	assert_int_equal(census.objects, N_TYPES - 1 + 300);
	assert_int_equal(census.blocks, 600 + 300);
	assert_int_equal(row_of(&census, "type7", 32)->objects, 301);
	assert_int_equal(census.rows[0].objects, 301);
	for (uint32_t i = 0; i < census.n_rows; i++)
		assert_true(census.rows[i].type <= census.n_names);
	torsh_census_free(&census);
}

static void one_that_is_cancelled_ends(void **state)
{
	const _Atomic bool is_cancelled = true;
	struct heap_range range = {address_of(pools), address_of(pools) + POOL_BYTES};
	const struct heap_ranges maps = {.items = &range, .n = 1};
	struct census census = {0};

	(void)state;
	make_pool(0, 64, 100, 3);
	assert_int_equal(torsh_census_take(&census, getpid(), &maps, &is_cancelled), -ECANCELED);
	assert_null(census.rows);
}

static void a_process_that_is_gone_is_an_error(void **state)
{
	const struct heap_ranges none = {0};
	struct census census = {0};
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	assert_true(child > 0);
	waitpid(child, NULL, 0);
	assert_true(torsh_census_take(&census, child, &none, &is_not_cancelled) < 0);
	assert_null(census.rows);
}

/* A mapping whose end was given back since, and one at which there is nothing. */
static void what_is_not_mapped_any_more_is_left_out(void **state)
{
	struct heap_range ranges[] = {
		{address_of(pools), address_of(pools) + N_POOLS * POOL_BYTES},
		{4096, 4096 + 64 * POOL_BYTES},
	};
	const struct heap_ranges maps = {.items = ranges, .n = 2};
	struct census census = {0};

	(void)state;
	make_pool(0, 64, 100, 3);
	make_pool(1, 64, 100, 3);
	mmap(pool(1), (N_POOLS - 1) * POOL_BYTES, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	torsh_census_take(&census, getpid(), &maps, &is_not_cancelled);
	assert_true(census.pool_bytes <= POOL_BYTES);
	torsh_census_free(&census);
}

#define WITH_POOLS(test) cmocka_unit_test_setup_teardown(test, map_pools, unmap_pools)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_POOLS(objects_are_counted_by_type_and_size),
		WITH_POOLS(nothing_has_no_rows),
		WITH_POOLS(damaged_pools_are_left_out_and_counted),
		WITH_POOLS(damaged_objects_have_no_type),
		WITH_POOLS(more_types_than_rows_are_in_the_sums),
		WITH_POOLS(one_that_is_cancelled_ends),
		WITH_POOLS(a_process_that_is_gone_is_an_error),
		WITH_POOLS(what_is_not_mapped_any_more_is_left_out),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
