/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who owns an area of an address space, by its line in /proc/PID/smaps and what is known of it. */
#ifndef TORSH_WRITER_RESIDENCY_AREA_OWNERS_H
#define TORSH_WRITER_RESIDENCY_AREA_OWNERS_H

#include <stdbool.h>

#include "tools/writer/reachability/image/memory_areas.h"
#include "tools/writer/residency/page_owners.h"
#include "tools/writer/residency/thread_names.h"

struct area_owners {
	struct account *account;
	const struct memory_areas *areas;
	const struct thread_names *threads;
	bool is_glibc; /* the target's malloc is the C library's */
	struct hash_map modules; /* paths of files with code */
	uint32_t n_arenas; /* of glibc, so far */
};

/* Begin with the areas of a process. All but the map stays the caller's. */
void torsh_area_owners_begin(struct area_owners *owners);

/* Free what it holds. */
void torsh_area_owners_end(struct area_owners *owners);

/*
 * Returns the region of area number i: called for each, in their order. The rest's stack is 0.
 */
struct region torsh_area_owners_of(struct area_owners *owners, uint32_t i);

#endif
