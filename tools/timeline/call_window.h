/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The latest CUDA calls of a process by correlation id, with a number for each. Waits are reported
 * within seconds of their call, so a table of fixed size suffices for runs of any length; a wait
 * that is reported later than WINDOW_CALLS calls after its own is not matched.
 */
#ifndef TORSH_TIMELINE_CALL_WINDOW_H
#define TORSH_TIMELINE_CALL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/base/containers/sparse_array.h"

#define WINDOW_CALLS (1u << 22) /* at a million calls per second: four seconds */

struct call_window {
	struct sparse_array slots; /* by the correlation id's low bits */
};

/* Begin without calls; torsh_call_window_destroy frees the slots. */
void torsh_call_window_create(struct call_window *window);

/* Free the window. */
void torsh_call_window_destroy(struct call_window *window);

/* Add a call; correlation 0 is ignored. */
void torsh_call_window_add(struct call_window *window, uint32_t correlation, uint32_t number);

/* Returns false if the call was not recorded, or is too old. */
bool torsh_call_window_find(const struct call_window *window, uint32_t correlation,
			    uint32_t *number);

#endif
