/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The address space that a process mapped with mmap, mremap and brk, by the stack that mapped it,
 * with its exact peak. A new mapping ends what it overlaps; lengths are rounded up to pages as the
 * kernel does. A mapping that mremap moves or grows belongs to the stack of the mremap; one that it
 * shrinks keeps its stack.
 */
#ifndef TORSH_WRITER_FOLD_MAPPINGS_H
#define TORSH_WRITER_FOLD_MAPPINGS_H

#include <stddef.h>

#include "agent/wire/event.h"
#include "tools/writer/fold/peak_tracker.h"
#include "tools/base/containers/address_ranges.h"
#include "tools/writer/fold/tables/site_index.h"

struct map_site {
	struct site_usage live;
	uint32_t stack;
	uint64_t total_bytes; /* ever mapped */
};

struct mappings {
	struct address_ranges ranges;
	struct peak_tracker tracker;
	struct map_site *sites; /* [0]: the empty stack */
	uint32_t n_sites;
	size_t site_capacity;
	struct number_index site_index;
	uint64_t page_bytes;
	uint64_t maps, unmaps, advised_bytes;
};

/* Create an empty address space. */
void torsh_mappings_create(struct mappings *mappings);

/* Free it. */
void torsh_mappings_destroy(struct mappings *mappings);

/*
 * Fold an event MAP, UNMAP, REMAP, PROGRAM_BREAK or ADVISE; other events are ignored. Invalid
 * events, for example with a length beyond the address space, change nothing.
 */
void torsh_mappings_fold(struct mappings *mappings, const struct event *event, uint32_t stack);

#endif
