/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The source line of a Python instruction, from the table in its code object, by version. */
#ifndef TORSH_AGENT_WIRE_CPYTHON_PYTHON_LINES_H
#define TORSH_AGENT_WIRE_CPYTHON_PYTHON_LINES_H

#include <stdint.h>

#include "agent/wire/cpython/cpython_layout.h"

/* The table of a code object, and the entry at which the last search ended. */
struct python_lines {
	const uint8_t *table;
	uint32_t n_bytes;
	uint32_t first_line;
	uint32_t entry; /* its first byte */
	uint32_t line; /* before the entry */
	int32_t start; /* offset of the first instruction of the entry; 0 of the first entry */
};

/*
 * The line of the instruction at offset bytes, or 0 if the table has none for it. Before the first
 * instruction (offset < 0) it is the code's first line, as in the interpreter. The search goes on
 * where the last one ended, unless offset is before that.
 */
uint32_t torsh_python_line(enum cpython_lines how, struct python_lines *lines, int32_t offset);

#endif
