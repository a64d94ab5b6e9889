/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The latest calls of CUDA of a process by their correlations, and a number for each. That a call
 * waited is reported within seconds of it: a table of fixed size is enough for runs of any length,
 * and what is reported later than WINDOW_CALLS calls after its own has none.
 */
#ifndef TORSH_TIMELINE_CALL_WINDOW_H
#define TORSH_TIMELINE_CALL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/base/containers/sparse_array.h"

#define WINDOW_CALLS (1u << 22) /* at a million calls a second four seconds */

struct call_window {
	struct sparse_array slots; /* by the correlation's low bits */
};

/* Begin without calls; torsh_call_window_destroy frees the slots. */
void torsh_call_window_create(struct call_window *window);
void torsh_call_window_destroy(struct call_window *window);

/* A call was reported; its correlation may be 0: nothing can name it then. */
void torsh_call_window_add(struct call_window *window, uint32_t correlation, uint32_t number);

/* Returns false where the call was not recorded, or is too old. */
bool torsh_call_window_find(const struct call_window *window, uint32_t correlation,
			    uint32_t *number);

#endif
