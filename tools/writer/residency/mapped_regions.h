/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a target, or the process that it was forked from, mapped itself: regions by their stack. */
#ifndef TORSH_WRITER_RESIDENCY_MAPPED_REGIONS_H
#define TORSH_WRITER_RESIDENCY_MAPPED_REGIONS_H

#include <stddef.h>

#include "tools/writer/residency/account_take.h"
#include "tools/writer/residency/page_owners.h"

struct mapped_regions {
	struct region *items; /* in order, apart from each other */
	uint32_t n;
	size_t capacity;
};

/* Collect them; names are the account's. */
void torsh_mapped_regions_collect(struct mapped_regions *mapped, struct account *account,
				  const struct account_source *source);

/* Free them. */
void torsh_mapped_regions_free(struct mapped_regions *mapped);

/* Returns the region at the address, up to its end or the end of the area's. */
struct region torsh_mapped_regions_at(const struct mapped_regions *mapped,
				      const struct region *area, uint64_t address);

/* Returns the stack that mapped the address; 0: none is known. */
uint32_t torsh_mapped_regions_stack(const struct mapped_regions *mapped, uint64_t address);

#endif
