/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which blocks that were live at a moment had been allocated before a limit. A recording has no
 * ages of blocks at a moment, but bounds of how many of a stack's blocks are that old:
 * - Those that live at the end and have such a time (Live in recording.proto).
 * - What is that old was live at every moment between the limit and this one: no more than the
 *   least that the stack had at one of these.
 * - What the stack had at a moment before the limit is all that it ever allocated but the rest: no
 *   more than this rest was allocated after the limit.
 */
#ifndef TORSH_MEMORY_ALIVE_FOR_H
#define TORSH_MEMORY_ALIVE_FOR_H

#include "tools/memory/moments.h"

/*
 * Add to `alive` what surely was allocated before limit_ns, and to `undecided` what perhaps was, of
 * the blocks that were live at a moment of these. Of sampled blocks nothing is sure.
 */
void torsh_alive_for(struct allocation_sites *alive, struct allocation_sites *undecided,
		     const struct memory_moments *moments, const struct memory_moment *moment,
		     uint64_t limit_ns);

#endif
