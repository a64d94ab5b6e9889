/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/free_extents.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

#define EXTENT_MOST (UINT64_C(64) << 20) /* the maximum size of a chunk */

static int reserve_one(struct extent **items, uint32_t n, size_t *capacity)
{
	struct extent *larger =
		torsh_array_try_grow(*items, (size_t)n + 1, capacity, sizeof(*larger));

	if (!larger)
		return -1;
	*items = larger;
	return 0;
}

void torsh_free_extents_destroy(struct free_extents *extents)
{
	free(extents->free);
	free(extents->resting);
	*extents = (struct free_extents){0};
}

void torsh_free_extents_add(struct free_extents *extents, struct extent extent)
{
	if (extent.n_bytes &&
	    !reserve_one(&extents->resting, extents->n_resting, &extents->resting_capacity))
		extents->resting[extents->n_resting++] = extent;
}

static void drop_free(struct free_extents *extents, uint32_t i)
{
	memmove(&extents->free[i], &extents->free[i + 1],
		(extents->n_free - i - 1) * sizeof(extents->free[0]));
	extents->n_free--;
}

/*
 * Add a free extent, joined with its free neighbours. Returns its index, or UINT32_MAX without
 * memory.
 */
static uint32_t add_free(struct free_extents *extents, struct extent extent)
{
	uint32_t i = 0;

	while (i < extents->n_free && extents->free[i].offset < extent.offset)
		i++;
	if (i < extents->n_free && extent.offset + extent.n_bytes == extents->free[i].offset &&
	    extent.n_bytes + extents->free[i].n_bytes <= EXTENT_MOST) {
		extent.n_bytes += extents->free[i].n_bytes;
		drop_free(extents, i);
	}
	if (i && extents->free[i - 1].offset + extents->free[i - 1].n_bytes == extent.offset &&
	    extent.n_bytes + extents->free[i - 1].n_bytes <= EXTENT_MOST) {
		extents->free[i - 1].n_bytes += extent.n_bytes;
		return i - 1;
	}
	if (reserve_one(&extents->free, extents->n_free, &extents->free_capacity))
		return UINT32_MAX;
	memmove(&extents->free[i + 1], &extents->free[i], (extents->n_free - i) * sizeof(extent));
	extents->free[i] = extent;
	extents->n_free++;
	return i;
}

void torsh_free_extents_settle(struct free_extents *extents,
			       int (*write_free)(void *context, struct extent extent),
			       void *context)
{
	for (uint32_t k = 0; k < extents->n_resting; k++) {
		uint32_t i = add_free(extents, extents->resting[k]);

		if (i != UINT32_MAX && write_free(context, extents->free[i]))
			drop_free(extents, i);
	}
	extents->n_resting = 0;
}

struct extent torsh_free_extents_take(struct free_extents *extents, uint64_t n_bytes,
				      uint64_t n_rest_least)
{
	for (uint32_t i = 0; i < extents->n_free; i++) {
		struct extent *found = &extents->free[i], whole = *found;

		if (found->n_bytes != n_bytes && found->n_bytes < n_bytes + n_rest_least)
			continue;
		found->offset += n_bytes;
		found->n_bytes -= n_bytes;
		if (!found->n_bytes)
			drop_free(extents, i);
		return whole;
	}
	return (struct extent){0};
}
