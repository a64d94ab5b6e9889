/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The frame of a stack that its memory is attributed to: the innermost Python line outside the
 * import machinery, else the innermost Python line, else the innermost address outside the C and
 * C++ libraries, else the innermost address.
 *
 * A stack's result depends only on its own address and on its parent's result. The results of the
 * branches (stack_table.h) are stored, at the first request; the others are found from them. Owned
 * by the drain thread.
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
	struct attributed_frame *items; /* by branch; [0]: of the empty stack */
	uint32_t n;
	size_t capacity;
	uint8_t *ranks; /* by address; n_ranked of them */
	size_t n_ranks;
	uint32_t n_ranked;
};

/* Add what new stacks need. */
void torsh_attributed_frames_update(struct attributed_frames *attributed,
				    const struct code_table *code,
				    const struct stack_table *stacks);

/* Returns the frame of a stack that was there at the last update. */
struct attributed_frame torsh_attributed_frames_of(const struct attributed_frames *attributed,
						   const struct stack_table *stacks,
						   uint32_t stack);

/* Free the arrays. */
void torsh_attributed_frames_destroy(struct attributed_frames *attributed);

#endif
