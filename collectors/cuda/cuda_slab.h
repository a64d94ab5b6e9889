/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Zeroed items of one size, taken from pages of the agent and never freed. */
#ifndef TORSH_COLLECTORS_CUDA_CUDA_SLAB_H
#define TORSH_COLLECTORS_CUDA_CUDA_SLAB_H

#include <stddef.h>
#include <stdint.h>

#include "shim/sys.h"

#define SLAB_ITEMS 64u /* per mapping */

struct cuda_slab {
	char *unused; /* the first of n_unused contiguous items */
	uint32_t n_unused;
};

/*
 * Take one item of item_bytes, the same for every call on this slab. The caller holds the lock that
 * guards the slab. NULL without memory.
 */
static inline void *torsh_cuda_slab_take(struct cuda_slab *slab, size_t item_bytes)
{
	void *item;

	if (!slab->n_unused) {
		slab->unused = torsh_sys_pages(SLAB_ITEMS * item_bytes);
		slab->n_unused = slab->unused ? SLAB_ITEMS : 0;
	}
	if (!slab->n_unused)
		return NULL;
	slab->n_unused--;
	item = slab->unused;
	slab->unused += item_bytes;
	return item;
}

#endif
