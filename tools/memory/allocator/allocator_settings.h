/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The settings of PyTorch's caching allocator, as PYTORCH_ALLOC_CONF and --allocator have them:
 * "expandable_segments:True,max_split_size_mb:128".
 */
#ifndef TORSH_MEMORY_ALLOCATOR_ALLOCATOR_SETTINGS_H
#define TORSH_MEMORY_ALLOCATOR_ALLOCATOR_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROUNDUP_INTERVALS 16u /* by size: below 2 MiB, below 4 MiB, and so on */

struct allocator_settings {
	bool is_expandable;
	bool is_native; /* false: a back end that the model doesn't have, cudaMallocAsync */
	uint64_t max_split_bytes; /* UINT64_MAX: every block is split */
	uint64_t
		max_rounding_bytes; /* how much larger a block of that size may be than requested */
	double collection_threshold; /* a part of the capacity; 0: no collection */
	uint64_t roundup_divisions[ROUNDUP_INTERVALS]; /* of a power of two; 0: 512 bytes */
};

/* PyTorch's settings without any variable. */
void torsh_allocator_settings_default(struct allocator_settings *settings);

/*
 * Apply a list of settings; keys that do not change what is reserved are accepted and ignored.
 * Returns 0, or -EINVAL for a malformed value, with *at at its key.
 */
int torsh_allocator_settings_parse(struct allocator_settings *settings, const char *text,
				   const char **at);

#endif
