/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The latest launches of a process by their correlations, and a number for each. What a launch caused is told within seconds
 * of it: a table of fixed size is enough for runs of any length, and what is told later than WINDOW_LAUNCHES launches after
 * its own has none.
 */
#ifndef TORSH_PROFILE_LAUNCH_WINDOW_H
#define TORSH_PROFILE_LAUNCH_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_LAUNCHES \
	(1u << 22) /* at a million launches a second four seconds; memory that is not used is not taken */

struct launch_window {
	struct window_slot *slots; /* by the correlation's low bits */
};

void torsh_launch_window_create(struct launch_window *window);
void torsh_launch_window_destroy(struct launch_window *window);

/* A launch was told; its correlation may be 0: nothing can name it then. */
void torsh_launch_window_add(struct launch_window *window, uint32_t correlation, uint32_t number);

/* Returns false where the launch was not told, or is too old. */
bool torsh_launch_window_find(const struct launch_window *window, uint32_t correlation, uint32_t *number);

#endif
