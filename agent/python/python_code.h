/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Ids for lines of Python: a code object and an instruction become a function's names and a line,
 * sent to the writer once. Any thread. The code object must be alive, as it is while a frame of the
 * calling thread executes it.
 */
#ifndef TORSH_AGENT_PYTHON_PYTHON_CODE_H
#define TORSH_AGENT_PYTHON_PYTHON_CODE_H

#include <stdint.h>

#include "agent/wire/cpython/python_lines.h"

#define PYTHON_NO_ID UINT32_MAX /* the id of a frame that isn't a function's */
#define PYTHON_N_CODES 1024u
#define PYTHON_N_PAGES 4u /* a code object, its two names and its table of lines */

/* A code object: known readable, with its names registered. */
struct python_code {
	uintptr_t address;
	uint32_t version; /* of the address */
	uint32_t index; /* of the names */
	struct python_lines lines;
};

/*
 * Of one producer: codes by hash of the address; texts, because signal stacks are small; and the
 * pages that are known to be readable while one code is read.
 */
struct python_codes {
	struct python_code cached[PYTHON_N_CODES];
	char name[1024], file[4096];
	uintptr_t pages[PYTHON_N_PAGES];
	uint32_t oldest_page;
};

/*
 * The id of the line that frame executes in its code object code, the address having this version;
 * instruction as the chain read it. PYTHON_NO_ID if code is 0 or the interpreter's own; 0 when a
 * table is full. Takes about a microsecond for a code that is not cached.
 */
uint32_t torsh_python_code_id(uintptr_t frame, uintptr_t code, uint32_t version,
			      uint64_t instruction, struct python_codes *cache);

#endif
