/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The anchor of a repeated sequence: an operator or a module that each repetition has once. From
 * one anchor to the next is a segment. The best anchor is that by which the sequence is described
 * in the fewest words: each different segment once, and half a word for each segment.
 */
#ifndef TORSH_TIMELINE_STEPS_ANCHOR_H
#define TORSH_TIMELINE_STEPS_ANCHOR_H

#include "tools/timeline/steps/op_sequence.h"

#define REPEATS_MIN 3u /* repetitions that are no coincidence */

/* A sequence with its symbols numbered from 0. */
struct symbols {
	const struct op_place *places;
	uint32_t *items; /* the symbol of each of the n places */
	size_t n, n_different;
	size_t *counts; /* by symbol */
	bool *is_module; /* by symbol */
};

/* Number the symbols of n places, which must outlive them. */
void torsh_symbols_make(struct symbols *symbols, const struct op_place *places, size_t n);

/* Free the symbols. */
void torsh_symbols_free(struct symbols *symbols);

#define ANCHOR_NONE UINT32_MAX

/* Returns the best anchor among the modules, or among all symbols; ANCHOR_NONE: none. */
uint32_t torsh_anchor_choose(const struct symbols *symbols, bool is_of_modules);

/*
 * Returns the places of that symbol, and sets *n to their number. The caller frees them.
 */
size_t *torsh_anchor_places(const struct symbols *symbols, uint32_t anchor, size_t *n);

/* The segment that covers most of the sequence, of those that equal each other. */
struct segment {
	size_t first, n; /* place of one of them, and its length */
};

/* Returns that segment of n anchors. */
struct segment torsh_anchor_segment(const struct symbols *symbols, const size_t *anchors, size_t n);

/* Returns a hash of n symbols; equal ones are taken for equal sequences. */
uint64_t torsh_symbols_hash(const uint32_t *symbols, size_t n);

#endif
