/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Growth in a window of a run: from the times of the blocks that were alive at the end. What the
 * recording has of the survivors is of all steps.
 */
#ifndef TORSH_MEMORY_GROWTH_GROWTH_WINDOW_H
#define TORSH_MEMORY_GROWTH_GROWTH_WINDOW_H

#include "tools/recording/recording.h"
#include "tools/timeline/window.h"

/*
 * Replace the process's steps and survivors by those of the window: of these steps, which have
 * ended, those that it overlaps, and the blocks that were allocated in it. The other steps are
 * removed. Blocks of a group (struct recorded_live_group) count as its first one.
 */
void torsh_growth_restrict(struct recorded_process *process, struct steps *steps,
			   const struct time_window *window);

#endif
