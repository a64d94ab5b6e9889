/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Unwinding with all registers by interpreting call frame information as it stands: slow and
 * complete, for frames that no packed rule describes. Takes no lock, allocates nothing, reads no
 * memory that isn't there.
 */
#ifndef TORSH_AGENT_STACK_UNWIND_FULL_H
#define TORSH_AGENT_STACK_UNWIND_FULL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/stack/cfi.h"
#include "agent/stack/expression.h"

struct unwind_cursor {
	/* rsp: the frame's at its return point; rip: the address that is next */
	uintptr_t registers[CFI_N_REGISTERS];
	bool is_exact; /* rip is that of an interrupted instruction, not a return address */
	bool is_guessing; /* a frame further in had no unwind information */
	uintptr_t known_page; /* memory that was read before */
	struct cfi_scratch *scratch; /* the caller's */
	/* Of one step: not on the stack, which may be a signal handler's small one. */
	uintptr_t next[CFI_N_REGISTERS], values[EXPRESSION_VALUES];
};

/*
 * Start in the frame of the calling function's own callee, and step out until rsp is sp: the cursor
 * then stands in the frame that will run with that rsp, with its callee-saved registers. 0, or
 * -errno when it wasn't reached.
 */
int torsh_unwind_reach(struct unwind_cursor *cursor, struct cfi_scratch *scratch, uintptr_t sp);

/*
 * Go to the next outer frame: 1, 0 when this is the outermost one, or -errno when there is no way
 * on.
 */
int torsh_unwind_step(struct unwind_cursor *cursor);

#endif
