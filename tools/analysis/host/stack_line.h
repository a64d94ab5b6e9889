/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stacks of one line, which rules add up. */
#ifndef TORSH_ANALYSIS_HOST_STACK_LINE_H
#define TORSH_ANALYSIS_HOST_STACK_LINE_H

#include "tools/recording/recording.h"

/*
 * A number that the process's stacks of one line have in common: the innermost line of Python, else
 * the innermost address in the program itself, else the stack.
 */
uint64_t torsh_stack_line(const struct recorded_process *process, uint32_t stack);

#endif
