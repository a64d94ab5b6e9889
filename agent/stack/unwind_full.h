/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Unwinds with all registers by interpreting call frame information: slow and complete, for frames
 * that no packed rule describes. Takes no lock, allocates nothing, and reads only memory that is
 * mapped.
 */
#ifndef TORSH_AGENT_STACK_UNWIND_FULL_H
#define TORSH_AGENT_STACK_UNWIND_FULL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/stack/dwarf/cfi.h"
#include "agent/stack/dwarf/expression.h"
#include "agent/stack/recent_functions.h"

struct unwind_cursor {
	/* CFI_SP: the frame's at its return point; CFI_IP: the next address */
	uintptr_t registers[CFI_N_REGISTERS];
	bool is_exact; /* that is the address of an interrupted instruction, not a return address */
	bool is_guessing; /* a frame further in had no unwind information */
	bool is_sp_guessed; /* CFI_SP is a lower bound (UNWIND_CHAIN_HAS_SP) */
	uintptr_t known_page; /* readable page for torsh_probe_read */
	struct recent_functions *recent; /* the caller's */
	const struct cfi_row *row; /* for one step */
	/* For one step: not on the stack, which may be a signal handler's small one. */
	uintptr_t next[CFI_N_REGISTERS], values[EXPRESSION_VALUES];
};

/*
 * Start in the calling function's callee, and step out until the stack pointer is sp: the cursor is
 * then in the frame that will run with it, with its callee-saved registers. Returns 0, or -errno if
 * it wasn't reached.
 */
int torsh_unwind_reach(struct unwind_cursor *cursor, struct recent_functions *recent, uintptr_t sp);

/*
 * Go to the next outer frame. Returns 1, 0 if this is the outermost one, or -errno if there is no
 * way on.
 */
int torsh_unwind_step(struct unwind_cursor *cursor);

#endif
