/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the row of a number, for rows that come nearly in the order of their numbers and stay:
 * 64 numbers share a bitmap and the first one's row, as long as the others follow it. Those that
 * don't are in a hash index of their own. A table by number took 16 times as much.
 *
 * Its memory is in proportion to the rows, at most some 70 bytes each, however far apart their
 * numbers are: processes of a session share the numbers of stacks, and a short one has few of them.
 */
#ifndef TORSH_BASE_CONTAINERS_ROW_INDEX_H
#define TORSH_BASE_CONTAINERS_ROW_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/key_index.h"

#define ROW_INDEX_NONE UINT32_MAX

struct row_group {
	uint64_t set; /* a bit for each of 64 numbers */
	uint32_t first; /* row of the lowest number that is set; the next ones follow */
};

/* Zeroed: an empty index. */
struct row_index {
	struct row_group *groups;
	uint32_t n_groups;
	size_t groups_room;
	struct key_index by_number; /* the groups, by number / 64 + 1; without slots: none */
	struct key_index others; /* rows, by number + 1; likewise */
};

/* Free the index. */
void torsh_row_index_destroy(struct row_index *index);

/* Returns the row of a number, or ROW_INDEX_NONE. */
uint32_t torsh_row_index_find(const struct row_index *index, uint32_t number);

/* Add the row of a number that has none. */
void torsh_row_index_add(struct row_index *index, uint32_t number, uint32_t row);

#endif
