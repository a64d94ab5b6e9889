/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The free extents of a recording: the space of chunks that are no longer needed, by offset. A
 * freed extent is reusable after two calls of torsh_free_extents_settle, so that concurrent readers
 * of the file are safe.
 */
#ifndef TORSH_STORE_FREE_EXTENTS_H
#define TORSH_STORE_FREE_EXTENTS_H

#include <stddef.h>
#include <stdint.h>

struct extent {
	uint64_t offset, n_bytes;
};

struct free_extents {
	struct extent *free; /* in the order of the file; none touches the next */
	uint32_t n_free;
	size_t free_capacity;
	struct extent *resting;
	uint32_t n_resting;
	size_t resting_capacity;
};

/* Free the lists. */
void torsh_free_extents_destroy(struct free_extents *extents);

/* Free an extent. If memory runs out, its space in the file is lost. */
void torsh_free_extents_add(struct free_extents *extents, struct extent extent);

/*
 * Make pending extents free. write_free(context, extent) marks each changed one in the file; on
 * failure the extent is dropped.
 */
void torsh_free_extents_settle(struct free_extents *extents,
			       int (*write_free)(void *context, struct extent extent),
			       void *context);

/*
 * Take a free extent of exactly n_bytes, or of at least n_rest_least more. Returns the whole
 * extent; the caller uses its start, and the rest stays free. n_bytes 0: none.
 */
struct extent torsh_free_extents_take(struct free_extents *extents, uint64_t n_bytes,
				      uint64_t n_rest_least);

#endif
