/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Blocks and bytes of numbered things, such as stacks or nodes of a tree, packed: a recording has
 * millions, and most are a few small numbers. They are only read all, in their order. A number may
 * be there several times. Running out of memory ends the program.
 */
#ifndef TORSH_BASE_CONTAINERS_USAGE_LIST_H
#define TORSH_BASE_CONTAINERS_USAGE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: an empty list. */
struct usage_list {
	uint8_t *packed;
	size_t n_packed, packed_room;
	uint32_t last; /* number that was added last */
};

/* A usage that was read. Zeroed: before the first one. */
struct usage_at {
	uint32_t number;
	uint64_t blocks, bytes;
	size_t end; /* in packed */
};

/* Add a usage. */
void torsh_usage_list_add(struct usage_list *list, uint32_t number, uint64_t blocks,
			  uint64_t bytes);

/* Go to the next usage; false: there is none. */
bool torsh_usage_list_next(const struct usage_list *list, struct usage_at *at);

/* Remove all usages; their memory stays for others. */
void torsh_usage_list_clear(struct usage_list *list);

/* Free the usages. */
void torsh_usage_list_free(struct usage_list *list);

#endif
