/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who holds memory, by line of source: what `torsh top` shows of the holders that it was given. */
#ifndef TORSH_TOP_HOLDERS_H
#define TORSH_TOP_HOLDERS_H

#include "tools/symbols/symbols.h"

/* Texts are the symbols'; function may be NULL, file is where line isn't 0. */
struct top_holder {
	const char *function, *file, *module;
	int line;
	uint64_t bytes, blocks;
};

struct top_holders {
	struct top_holder *items; /* the largest first */
	size_t n, n_room;
};

/* Add those of a process, which are stacks of one frame. */
void torsh_top_holders_add(struct top_holders *holders, const struct profile_process *process, struct symbols *symbols);

/* One for each line, after the last one was added. */
void torsh_top_holders_settle(struct top_holders *holders);
void torsh_top_holders_free(struct top_holders *holders);

#endif
