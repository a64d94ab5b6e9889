/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* --sort of commands with a weight per row for each key: the heaviest row first. */
#ifndef TORSH_COMMAND_SORT_H
#define TORSH_COMMAND_SORT_H

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

struct sort_key {
	const char *name;
	uint64_t (*weight)(const void *row); /* NULL: all weigh the same */
};

/* Define weigh_NAME, which returns the weight of a row of that type: an expression of `row`. */
#define SORT_WEIGHT(name, type, weight)               \
	static uint64_t weigh_##name(const void *any) \
	{                                             \
		const type *row = any;                \
                                                      \
		return weight;                        \
	}

/* The table entry of a key. */
#define SORT_KEY(name) {#name, weigh_##name},

/* Returns the key that the text of --sort names; keys end with a NULL name. */
const struct sort_key *torsh_sort_key(struct argp_state *state, const struct sort_key *keys,
				      const char *text);

/* Sort n rows of `bytes` bytes by the key, and rows of equal weight by compare. */
void torsh_sort_rows(void *rows, size_t n, size_t bytes, const struct sort_key *key,
		     int (*compare)(const void *a, const void *b));

#endif
