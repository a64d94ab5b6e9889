/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Frames and stacks as text, in the form of torch.profiler. */
#ifndef TORSH_SYMBOLS_FRAME_TEXT_H
#define TORSH_SYMBOLS_FRAME_TEXT_H

#include "tools/symbols/symbols.h"

/*
 * Returns the function's name; for a frame without one, the module and offset, or the address,
 * written into out of n bytes.
 */
const char *torsh_frame_name(const struct frame *frame, char *out, size_t n);

/*
 * Returns the frames of a stack, "file(line): function;...", innermost first: Python lines if the
 * process has any, else native frames. The caller frees it.
 */
char *torsh_stack_text(const struct recorded_process *process, uint32_t stack,
		       struct symbols *symbols);

/*
 * The line of the program that made the CUDA call in which the stack was taken, in the same form;
 * "": unknown. The caller frees it.
 */
char *torsh_stack_line_text(const struct recorded_process *process, uint32_t stack,
			    struct symbols *symbols);

#endif
