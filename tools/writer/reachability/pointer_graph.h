/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which blocks point to which, and which of them roots point to. Every aligned word that is an
 * address inside a block counts as a pointer to it, as for LeakSanitizer.
 */
#ifndef TORSH_WRITER_REACHABILITY_POINTER_GRAPH_H
#define TORSH_WRITER_REACHABILITY_POINTER_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/reachability/block_index.h"

/* The block's number, and whether the pointer is to its inside. */
struct pointer {
	uint32_t block : 31;
	uint32_t is_interior : 1;
};

/*
 * An interior pointer to what may be the begin of an object all the same: decided when the words at
 * both places have been read.
 */
struct doubtful_pointer {
	uint64_t address; /* that it points to */
	size_t number; /* of the pointer */
};

/* Words that may be pointers, with where they are. */
struct pointer_candidates {
	uint64_t words[BLOCK_INDEX_MANY], places[BLOCK_INDEX_MANY];
	uint32_t blocks[BLOCK_INDEX_MANY]; /* that they are in; NO_BLOCK: in a root */
	size_t n;
};

struct pointer_graph {
	const struct block_index *index;
	struct pointer *pointers; /* first those of roots, then those of blocks in their order */
	size_t n_pointers, capacity;
	size_t n_roots;
	uint64_t *root_addresses; /* where the roots' pointers are; 0: in a register */
	size_t root_capacity;
	uint32_t *firsts; /* by block: its first pointer; one more than there are blocks */
	uint32_t n_blocks; /* whose pointers are in the graph */
	struct doubtful_pointer *doubtful;
	size_t n_doubtful, doubtful_capacity;
	uint64_t n_words; /* read so far */
	bool has_roots; /* all of them: what comes is in blocks */
	struct pointer_candidates candidates; /* not looked up yet */
};

/* Create a graph of the index's blocks without pointers. The index stays the caller's. */
void torsh_pointer_graph_create(struct pointer_graph *graph, const struct block_index *index);

/* Free it. */
void torsh_pointer_graph_destroy(struct pointer_graph *graph);

/*
 * Add the pointers among words that no block contains, which are at that address, 0 for registers.
 * Before the first of a block.
 */
void torsh_pointer_graph_add_root(struct pointer_graph *graph, uint64_t address,
				  const uint64_t *words, size_t n);

/*
 * Add the pointers among words of a block. Blocks come in the order of their numbers, a block's
 * words in as many calls as the caller likes; those without words may be left out.
 */
void torsh_pointer_graph_add_words(struct pointer_graph *graph, uint32_t block,
				   const uint64_t *words, size_t n);

/* Call after the last word. */
void torsh_pointer_graph_end(struct pointer_graph *graph);

/* Nothing but the roots' addresses is read any more: free the rest. */
void torsh_pointer_graph_trim(struct pointer_graph *graph);

/* The doubtful pointer leads to the begin of an object. */
void torsh_pointer_graph_settle(struct pointer_graph *graph,
				const struct doubtful_pointer *pointer);

#endif
