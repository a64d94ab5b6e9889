/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Stacks recorded within CUDA calls: their innermost frames are CUPTI's, or those of the agent's
 * wrapper, which CUDA called.
 */
#ifndef TORSH_SYMBOLS_CUDA_FRAMES_H
#define TORSH_SYMBOLS_CUDA_FRAMES_H

#include "tools/symbols/symbols.h"

/*
 * Returns the part of the stack to show, from the CUDA function that the program called. A node of
 * the process.
 */
uint32_t torsh_cuda_frames_shown(const struct recorded_process *process, uint32_t stack);

/*
 * Returns the line to show: the innermost Python line or, without Python, the caller of CUDA. Owned
 * by the symbols. NULL: no stack.
 */
const struct frame *torsh_cuda_frames_line(const struct recorded_process *process, uint32_t stack,
					   struct symbols *symbols);

#endif
