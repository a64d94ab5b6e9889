/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Live blocks of up to 1 KiB by address, with only what totals need: 8 bytes per block, 9 to 11
 * with empty rows. Stack, time and thread of the allocation are not stored. The table is split into
 * shards that grow one by one, so growing needs little extra memory. A zeroed table is empty and
 * uses no memory.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_SMALL_TABLE_H
#define TORSH_WRITER_FOLD_TABLES_SMALL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define SMALL_SIZE_MAX 1024u
#define SMALL_SHARDS 64u

struct small_block {
	uint64_t address, size;
	uint64_t usable; /* 0: unknown */
};

struct small_shard {
	uint64_t *rows; /* n_rows of them, 0: empty */
	uint32_t n_rows, n_used;
};

struct small_table {
	struct small_shard shards[SMALL_SHARDS]; /* by the high bits of the address's hash */
	uint64_t n_blocks, bytes, usable_bytes;
};

/* Free the table. */
void torsh_small_destroy(struct small_table *table);

/* Returns true if the block fits in a row. */
bool torsh_small_fits(const struct small_block *block);

/* Add a block that fits, at an address that is not in the table. */
void torsh_small_add(struct small_table *table, const struct small_block *block);

/* Returns true if a block is at the address. */
bool torsh_small_has(const struct small_table *table, uint64_t address);

/* Remove the block at address; returns false if there is none. */
bool torsh_small_take(struct small_table *table, uint64_t address, struct small_block *block);

/* Returns the table's size in bytes, including empty rows. */
uint64_t torsh_small_bytes(const struct small_table *table);

#endif
