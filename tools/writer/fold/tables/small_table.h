/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Live blocks of up to 1 KiB by address, with nothing more than what totals need: 8 bytes for each,
 * 9 to 11 with empty rows. Which stack allocated one, when, and in which thread is not there. In
 * shards that grow one by one, so that growing takes little more than what it adds. All zeroes is
 * an empty table, which takes nothing.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_SMALL_TABLE_H
#define TORSH_WRITER_FOLD_TABLES_SMALL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define SMALL_SIZE_MAX 1024u
#define SMALL_SHARDS 64u

struct small_block {
	uint64_t address, size;
	uint64_t usable; /* 0: not known */
};

struct small_shard {
	uint64_t *rows; /* n_rows of them, 0: empty */
	uint32_t n_rows, n_used;
};

struct small_table {
	struct small_shard shards[SMALL_SHARDS]; /* by the upper bits of the address's hash */
	uint64_t n_blocks, bytes, usable_bytes;
};

/* Free the table. */
void torsh_small_destroy(struct small_table *table);

/* Does the block fit into a row? */
bool torsh_small_fits(const struct small_block *block);

/* Adds a block that fits, at an address where the table has none. */
void torsh_small_add(struct small_table *table, const struct small_block *block);

/* Is there a block at the address? */
bool torsh_small_has(const struct small_table *table, uint64_t address);

/* Takes the block at address out of the table; false: there is none. */
bool torsh_small_take(struct small_table *table, uint64_t address, struct small_block *block);

/* Memory that the table takes, empty rows included. */
uint64_t torsh_small_bytes(const struct small_table *table);

#endif
