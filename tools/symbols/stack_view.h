/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which frames of a recorded stack are shown. A stack is recorded whole: all native frames, and the
 * lines of Python directly outside of the native frame of the interpreter that executes them.
 */
#ifndef TORSH_SYMBOLS_STACK_VIEW_H
#define TORSH_SYMBOLS_STACK_VIEW_H

#include "tools/recording/recording.h"
#include "tools/symbols/symbols.h"

enum stack_view {
	/*
	 * Python instead of the interpreter: the interpreter's native frames are left out from the
	 * innermost Python line outwards; frames of libraries that Python called, and of their
	 * callees, stay.
	 */
	STACK_VIEW_MERGED,
	STACK_VIEW_PYTHON, /* lines of Python only */
	STACK_VIEW_NATIVE, /* native frames only */
};

/*
 * Returns the stack as it is shown: a number of the same process, added to its stacks if needed.
 * Use one view per process only.
 */
uint32_t torsh_stack_view(struct recorded_process *process, uint32_t stack, struct symbols *symbols,
			  enum stack_view view);

/*
 * Returns whether the innermost frame of a stack is shown. is_inner: neither it nor a frame further
 * in is a line of Python. This adds nothing to the stacks; all frames of an added one are shown.
 */
bool torsh_stack_view_shows(struct recorded_process *process, uint32_t stack, bool is_inner,
			    struct symbols *symbols, enum stack_view view);

/* Forget the view of a process, so that another one can be requested. Its stacks stay. */
void torsh_stack_views_forget(struct recorded_process *process);

/*
 * Returns the frames of the stack as it is shown, innermost first: *n frames in an array that the
 * caller frees.
 */
const struct frame **torsh_stack_frames(const struct recorded_process *process, uint32_t stack,
					struct symbols *symbols, enum stack_view view, size_t *n);

#endif
