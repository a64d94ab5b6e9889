/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Shares out resident pages among who owns their bytes: live blocks, what their allocator needs for
 * them, and the rest, which is the region's. Every byte has one owner.
 */
#ifndef TORSH_WRITER_RESIDENCY_PAGE_OWNERS_H
#define TORSH_WRITER_RESIDENCY_PAGE_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/writer/residency/account.h"
#include "tools/writer/residency/resident_blocks.h"

/* Whole pages of one use. */
struct region {
	uint64_t begin, end;
	struct owner rest; /* owns what isn't in blocks */
	/* only blocks with pages of their own are expected: the rest of such pages is theirs */
	bool is_unknown;
};

struct page_owners {
	struct account *account;
	const struct resident_blocks *blocks; /* those that were allocated last come first */
	uint64_t page_bytes;
	double share; /* that the process has of the pages, as other processes have them, too */
	/* where the last call ended, as calls come in the order of addresses */
	uint32_t next;
	uint64_t next_from;
};

/*
 * Add the resident pages from begin to end, which lie in the region. is_broken: a fork inherited
 * them and no longer shares them, which is what they are counted as.
 */
void torsh_page_owners_add(struct page_owners *owners, const struct region *region, uint64_t begin,
			   uint64_t end, bool is_broken);

#endif
