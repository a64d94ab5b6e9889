/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The pass up to the moment: its blocks, private pools, and how the cache grew last. */
#ifndef TORSH_DEVICE_OWNERS_OWNERS_PASS_H
#define TORSH_DEVICE_OWNERS_OWNERS_PASS_H

#include "tools/device/memory/device_revisit.h"
#include "tools/device/owners/captures.h"
#include "tools/device/owners/device_owners.h"
#include "tools/device/owners/loaded_code.h"

struct owners_pass {
	const struct owners_request *request;
	struct device_revisit revisit;
	struct captures captures;
	struct cache_growth growth;
	struct loaded_code code;
	struct event_device_limits limits; /* of the context; 0: not known */
	uint64_t new_segment; /* ordinal of a block that the allocator may just have reserved */
	uint32_t new_thread;
};

/* Make the pass; torsh_owners_pass_free frees it. */
void torsh_owners_pass_make(struct owners_pass *pass, const struct owners_request *request);

/* Free the pass. */
void torsh_owners_pass_free(struct owners_pass *pass);

/* Returns the free blocks in private pools, or in all others: of segments up to an ordinal. */
struct free_blocks torsh_owners_pass_free_blocks(const struct owners_pass *pass, bool is_private,
						 uint64_t n_ordinals);

/* Whether a block is in a private pool of CUDA graphs. */
bool torsh_owners_pass_is_private(const struct owners_pass *pass, const struct device_block *block);

#endif
