/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Stacks that were taken within calls of CUDA: they begin in CUPTI, or the agent's hook, which CUDA
 * called for the program.
 */
#ifndef TORSH_SYMBOLS_CUDA_FRAMES_H
#define TORSH_SYMBOLS_CUDA_FRAMES_H

#include "tools/symbols/symbols.h"

/*
 * The part of the stack that is shown: from the function of CUDA's on that the program called. A
 * node of the process.
 */
uint32_t torsh_cuda_frames_shown(const struct recorded_process *process, uint32_t stack);

/*
 * The line that people look for: the innermost one of Python; where there is none, of whatever
 * called CUDA. The symbols own it. NULL: there is no stack.
 */
const struct frame *torsh_cuda_frames_line(const struct recorded_process *process, uint32_t stack,
					   struct symbols *symbols);

#endif
