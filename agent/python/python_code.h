/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Ids for lines of Python: a code object and an instruction become a function's names and a line,
 * sent to the writer once. Any thread; the code object must be alive, as that of a frame of the
 * calling thread is.
 */
#ifndef TORSH_AGENT_PYTHON_PYTHON_CODE_H
#define TORSH_AGENT_PYTHON_PYTHON_CODE_H

#include <stdint.h>

#define PYTHON_NO_ID UINT32_MAX /* a frame that is no function's */

/* Scratch space for texts, one per producer, because signal stacks are small. */
struct python_scratch {
	char name[1024], file[4096];
};

/*
 * The id of the line that frame, whose code object is code, executes; instruction as
 * torsh_python_instruction read it. PYTHON_NO_ID when code is none, or the interpreter's own; 0
 * when a table is full. Takes about a microsecond.
 */
uint32_t torsh_python_code_id(uintptr_t frame, uintptr_t code, uint64_t instruction,
			      struct python_scratch *scratch);

#endif
