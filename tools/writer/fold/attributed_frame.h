/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The one address of a stack that says whose memory it is: the innermost line of Python, not of its
 * import machinery where there is another; without Python the innermost address outside of the C
 * and C++ libraries; else the innermost one.
 *
 * It follows from a stack's own address and its parent's lead, so that each stack is looked at
 * once, when somebody first asks. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_ATTRIBUTED_FRAME_H
#define TORSH_WRITER_FOLD_ATTRIBUTED_FRAME_H

#include "tools/writer/fold/tables/code_table.h"
#include "tools/writer/fold/tables/stack_table.h"

struct attributed_frame {
	uint32_t address; /* number */
	uint32_t rank; /* how much it says; 0: the empty stack's, which has none */
};

struct attributed_frames {
	struct attributed_frame *items; /* by stack */
	uint32_t n, capacity;
};

/* Take the stacks that are new; afterwards each has its lead. */
void torsh_attributed_frames_update(struct attributed_frames *attributed,
				    const struct code_table *code,
				    const struct stack_table *stacks);
void torsh_attributed_frames_destroy(struct attributed_frames *attributed);

#endif
