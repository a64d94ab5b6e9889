/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The part of an allocation site's live blocks that was allocated in a window of time. The
 * recording has the times of the first and the last block, and where more is known, those of groups
 * in between (Live in recording.proto).
 */
#ifndef TORSH_MEMORY_LEAKS_WINDOW_PARTS_H
#define TORSH_MEMORY_LEAKS_WINDOW_PARTS_H

#include "tools/memory/allocation_sites.h"
#include "tools/timeline/window.h"

/* Copies of a site with some of its blocks each; without blocks: there are no such. */
struct window_parts {
	struct allocation_site in; /* allocated in the window */
	struct allocation_site undecided; /* perhaps */
};

/*
 * Split a site of SITES_LIVE. Of a part, usable bytes are unknown, and so are the steps of its
 * first and last block unless these are those of the site.
 */
void torsh_window_parts_find(struct window_parts *parts, const struct time_window *window,
			     const struct allocation_site *site);

#endif
