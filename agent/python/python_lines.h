/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The source line of an instruction of Python: the tables that code objects carry, by version. */
#ifndef TORSH_AGENT_PYTHON_PYTHON_LINES_H
#define TORSH_AGENT_PYTHON_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "shim/cpython/cpython.h"

/*
 * The line of the instruction at offset bytes, or 0 where the table says that there is none. Before
 * the first instruction (offset < 0) it is the code's first line, as the interpreter has it.
 */
uint32_t torsh_python_line(enum cpython_lines how, const uint8_t *table, size_t n_bytes,
			   uint32_t first_line, int32_t offset);

#endif
