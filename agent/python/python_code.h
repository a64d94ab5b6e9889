/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Ids for lines of Python: a code object and an instruction become a function's names and a line,
 * sent to the writer once. Any thread. The code object must be alive, as it is while a frame of the
 * calling thread executes it.
 */
#ifndef TORSH_AGENT_PYTHON_PYTHON_CODE_H
#define TORSH_AGENT_PYTHON_PYTHON_CODE_H

#include <stdint.h>

#define PYTHON_NO_ID UINT32_MAX /* the id of a frame that isn't a function's */

/* Scratch space for texts, one per producer, because signal stacks are small. */
struct python_scratch {
	char name[1024], file[4096];
};

/*
 * The id of the line that frame executes in its code object code; instruction as
 * torsh_python_instruction read it. PYTHON_NO_ID if code is 0 or the interpreter's own; 0 when a
 * table is full. Takes about a microsecond.
 */
uint32_t torsh_python_code_id(uintptr_t frame, uintptr_t code, uint64_t instruction,
			      struct python_scratch *scratch);

#endif
