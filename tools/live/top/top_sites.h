/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The source lines that hold most memory, from the allocation sites that `torsh top` received. */
#ifndef TORSH_LIVE_TOP_TOP_SITES_H
#define TORSH_LIVE_TOP_TOP_SITES_H

#include "tools/symbols/symbols.h"

/*
 * Texts belong to the symbols; function may be NULL; file is valid if line isn't 0. Settled sites
 * have names and places as shown: sites that would look equal are merged.
 */
struct top_site {
	const char *function, *file, *module;
	int line;
	uint64_t bytes, blocks;
	char *name, *place; /* "std::map<…>::insert", "train.py:30" or "libtorch.so" */
};

struct top_sites {
	struct top_site *items; /* the largest first */
	size_t n, n_room;
};

/* Add a process's sites, which are stacks of one frame. */
void torsh_top_sites_add(struct top_sites *sites, const struct recorded_process *process,
			 struct symbols *symbols);

/* Merge the sites of each line, the largest first. Call after the last one was added. */
void torsh_top_sites_settle(struct top_sites *sites);

/* Free the sites. */
void torsh_top_sites_free(struct top_sites *sites);

#endif
