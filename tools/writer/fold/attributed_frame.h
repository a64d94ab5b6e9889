/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The one frame of a stack that its memory is attributed to: the innermost line of Python, not of
 * its import machinery where there is another; without Python the innermost address outside of the
 * C and C++ libraries; else the innermost one.
 *
 * It follows from a stack's own address and its parent's attributed frame, so that each stack is
 * looked at once, at the first request. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_ATTRIBUTED_FRAME_H
#define TORSH_WRITER_FOLD_ATTRIBUTED_FRAME_H

#include "tools/writer/fold/tables/code_table.h"
#include "tools/writer/fold/tables/stack_table.h"

struct attributed_frame {
	uint32_t address; /* number */
	/* the higher, the better the frame names the owner; 0: of the empty stack */
	uint32_t rank;
};

struct attributed_frames {
	struct attributed_frame *items; /* by stack */
	uint32_t n, capacity;
};

/* Add the frames of new stacks; afterwards items[] has one for each stack. */
void torsh_attributed_frames_update(struct attributed_frames *attributed,
				    const struct code_table *code,
				    const struct stack_table *stacks);

/* Free the frames. */
void torsh_attributed_frames_destroy(struct attributed_frames *attributed);

#endif
