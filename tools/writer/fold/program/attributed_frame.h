/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The frame of a stack that its memory is attributed to: the innermost Python line outside the
 * import machinery, else the innermost Python line, else the innermost address outside the C and
 * C++ libraries, else the innermost address.
 *
 * A stack's result depends only on its own address and on its parent's result, so each stack is
 * examined once, at the first request. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_PROGRAM_ATTRIBUTED_FRAME_H
#define TORSH_WRITER_FOLD_PROGRAM_ATTRIBUTED_FRAME_H

#include <stddef.h>

#include "tools/writer/fold/program/code_table.h"
#include "tools/writer/fold/program/stack_table.h"

struct attributed_frame {
	uint32_t address : 24; /* address number */
	/* higher values name the owner better; 0: the empty stack */
	uint32_t rank : 8;
};

_Static_assert(CODE_ADDRESSES_MAX < 1u << 24, "the number of an address has 24 bits");

struct attributed_frames {
	struct attributed_frame *items; /* by stack */
	uint32_t n;
	size_t capacity;
};

/* Add entries for new stacks; afterwards items[] has one for each stack. */
void torsh_attributed_frames_update(struct attributed_frames *attributed,
				    const struct code_table *code,
				    const struct stack_table *stacks);

/* Free the array. */
void torsh_attributed_frames_destroy(struct attributed_frames *attributed);

#endif
