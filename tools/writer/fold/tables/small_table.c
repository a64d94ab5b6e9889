/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/small_table.h"

#include <stddef.h>

#include "tools/base/memory.h"

#define FIRST_ROWS 512u
#define SHARD_BITS 6u

/*
 * A row, from the lowest bit: an eighth of the address, the size, and the usable bytes beyond the
 * size.
 */
#define ALIGNMENT 8u
#define ADDRESS_BITS 45u
#define SIZE_BITS 11u
#define EXCESS_SHIFT (ADDRESS_BITS + SIZE_BITS)
#define EXCESS_UNKNOWN 255u

_Static_assert(SMALL_SHARDS == 1u << SHARD_BITS, "a shard for each value of the bits");
_Static_assert(SMALL_SIZE_MAX < 1u << SIZE_BITS, "each size has its number");

static uint64_t hash_of(uint64_t address)
{
	return address * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t key_of(uint64_t row)
{
	return row & ((UINT64_C(1) << ADDRESS_BITS) - 1);
}

static uint64_t excess_of(const struct small_block *block)
{
	return block->usable ? block->usable - block->size : EXCESS_UNKNOWN;
}

static struct small_block block_of(uint64_t row)
{
	uint64_t size = row >> ADDRESS_BITS & ((1u << SIZE_BITS) - 1), excess = row >> EXCESS_SHIFT;

	return (struct small_block){
		.address = key_of(row) * ALIGNMENT,
		.size = size,
		.usable = excess == EXCESS_UNKNOWN ? 0 : size + excess,
	};
}

static uint32_t home_of(const struct small_shard *shard, uint64_t address)
{
	return (uint32_t)((unsigned __int128)(hash_of(address) << SHARD_BITS) * shard->n_rows >>
			  64);
}

static uint32_t row_after(const struct small_shard *shard, uint32_t i)
{
	return i + 1 == shard->n_rows ? 0 : i + 1;
}

static uint32_t shard_number(uint64_t address)
{
	return (uint32_t)(hash_of(address) >> (64 - SHARD_BITS));
}

/*
 * Returns the row with the address, or the empty row where it belongs. The shard has at least one
 * empty row.
 */
static uint32_t find_row(const struct small_shard *shard, uint64_t address)
{
	uint32_t i = home_of(shard, address);

	while (shard->rows[i] && key_of(shard->rows[i]) != address / ALIGNMENT)
		i = row_after(shard, i);
	return i;
}

static bool is_there(const struct small_shard *shard, uint64_t address, uint32_t *row)
{
	if (!shard->n_used || address % ALIGNMENT || address >> ADDRESS_BITS >= ALIGNMENT)
		return false;
	*row = find_row(shard, address);
	return shard->rows[*row] != 0;
}

static void grow(struct small_shard *shard)
{
	struct small_shard old = *shard;

	shard->n_rows = old.n_rows ? old.n_rows + old.n_rows / 4 : FIRST_ROWS;
	shard->rows = torsh_memory_pages(shard->n_rows * sizeof(*shard->rows));
	for (uint32_t i = 0; i < old.n_rows; i++) {
		if (old.rows[i])
			shard->rows[find_row(shard, key_of(old.rows[i]) * ALIGNMENT)] = old.rows[i];
	}
	if (old.rows)
		torsh_memory_region_free(old.rows, old.n_rows * sizeof(*old.rows));
}

void torsh_small_destroy(struct small_table *table)
{
	for (uint32_t i = 0; i < SMALL_SHARDS; i++) {
		const struct small_shard *shard = &table->shards[i];

		if (shard->rows)
			torsh_memory_region_free(shard->rows, shard->n_rows * sizeof(*shard->rows));
	}
	*table = (struct small_table){0};
}

bool torsh_small_fits(const struct small_block *block)
{
	return block->size <= SMALL_SIZE_MAX && block->address && block->address % ALIGNMENT == 0 &&
	       block->address >> ADDRESS_BITS < ALIGNMENT &&
	       (!block->usable || excess_of(block) < EXCESS_UNKNOWN);
}

void torsh_small_add(struct small_table *table, const struct small_block *block)
{
	struct small_shard *shard = &table->shards[shard_number(block->address)];

	if (shard->n_used >= shard->n_rows / 8 * 7)
		grow(shard);
	shard->n_used++;
	shard->rows[find_row(shard, block->address)] = block->address / ALIGNMENT |
						       block->size << ADDRESS_BITS |
						       excess_of(block) << EXCESS_SHIFT;
	table->n_blocks++;
	table->bytes += block->size;
	table->usable_bytes += block->usable;
}

bool torsh_small_has(const struct small_table *table, uint64_t address)
{
	uint32_t row;

	return is_there(&table->shards[shard_number(address)], address, &row);
}

/*
 * Backward-shift deletion: moves up the rows that the removed one displaced, so that each is found
 * from its home row.
 */
static void close_gap(struct small_shard *shard, uint32_t gap)
{
	uint32_t n = shard->n_rows;

	for (uint32_t i = row_after(shard, gap); shard->rows[i]; i = row_after(shard, i)) {
		uint32_t home = home_of(shard, key_of(shard->rows[i]) * ALIGNMENT);

		if ((i + n - home) % n < (i + n - gap) % n)
			continue;
		shard->rows[gap] = shard->rows[i];
		gap = i;
	}
	shard->rows[gap] = 0;
}

bool torsh_small_take(struct small_table *table, uint64_t address, struct small_block *block)
{
	struct small_shard *shard = &table->shards[shard_number(address)];
	uint32_t row;

	if (!is_there(shard, address, &row))
		return false;
	*block = block_of(shard->rows[row]);
	close_gap(shard, row);
	shard->n_used--;
	table->n_blocks--;
	table->bytes -= block->size;
	table->usable_bytes -= block->usable;
	return true;
}

uint64_t torsh_small_bytes(const struct small_table *table)
{
	uint64_t n_rows = 0;

	for (uint32_t i = 0; i < SMALL_SHARDS; i++)
		n_rows += table->shards[i].n_rows;
	return n_rows * sizeof(uint64_t);
}
