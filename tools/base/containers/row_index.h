/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the row of a number, for rows that come nearly in the order of their numbers and stay:
 * 64 numbers share a bitmap and the first one's row, as long as the others follow it. Those that
 * don't are in a hash index. A table by number took 16 times as much.
 */
#ifndef TORSH_BASE_CONTAINERS_ROW_INDEX_H
#define TORSH_BASE_CONTAINERS_ROW_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/key_index.h"
#include "tools/base/containers/sparse_array.h"

#define ROW_INDEX_NONE UINT32_MAX

/* Zeroed: an empty index. */
struct row_index {
	struct sparse_array groups; /* struct row_group by number / 64 */
	struct key_index others; /* by number + 1; without slots: none */
};

/* Free the index. */
void torsh_row_index_destroy(struct row_index *index);

/* Returns the row of a number, or ROW_INDEX_NONE. */
uint32_t torsh_row_index_find(const struct row_index *index, uint32_t number);

/* Add the row of a number that has none. */
void torsh_row_index_add(struct row_index *index, uint32_t number, uint32_t row);

/* Returns an upper bound of the numbers for which memory is allocated. */
size_t torsh_row_index_room(const struct row_index *index);

#endif
