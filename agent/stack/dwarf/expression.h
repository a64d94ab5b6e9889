/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Evaluates DWARF expressions (DWARF 5 section 2.5) in call frame information: a small stack
 * machine over the registers of a frame and memory, which is read only if it is readable.
 */
#ifndef TORSH_AGENT_STACK_DWARF_EXPRESSION_H
#define TORSH_AGENT_STACK_DWARF_EXPRESSION_H

#include <stdint.h>

#define EXPRESSION_VALUES 16

/*
 * Run the block (ULEB128 length, then operations) over registers[], indexed by DWARF number.
 * initial is pushed first unless NULL. Memory is read by torsh_probe_read with known_page. values
 * is scratch space of the caller. Returns 0 and the top of the stack in *result, or -EINVAL.
 */
int torsh_expression_run(const uint8_t *block, const uintptr_t *registers, const uintptr_t *initial,
			 uintptr_t *known_page, uintptr_t values[EXPRESSION_VALUES],
			 uintptr_t *result);

#endif
