/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The free extents of a recording: room of chunks that are not needed any more, by offset. A freed
 * extent rests until the next call of torsh_free_extents_settle but one, for those who read the
 * file meanwhile.
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

/* Free an extent. Where there is no memory it is lost for the file. */
void torsh_free_extents_add(struct free_extents *extents, struct extent extent);

/*
 * Make the resting extents free. write_free(context, extent) marks each that has changed in the
 * file; where it fails the extent is dropped.
 */
void torsh_free_extents_settle(struct free_extents *extents,
			       int (*write_free)(void *context, struct extent extent),
			       void *context);

/*
 * Take n_bytes of a free extent that has just so many, or at least n_rest_least more. Returns the
 * whole extent, of which the caller uses the start; what is left stays free. n_bytes 0: there is
 * none.
 */
struct extent torsh_free_extents_take(struct free_extents *extents, uint64_t n_bytes,
				      uint64_t n_rest_least);

#endif
