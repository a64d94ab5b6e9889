/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The source line of a Python instruction, from the table in its code object, by version. */
#ifndef TORSH_AGENT_PYTHON_PYTHON_LINES_H
#define TORSH_AGENT_PYTHON_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "shim/cpython/cpython.h"

/*
 * The line of the instruction at offset bytes, or 0 if the table has none for it. Before the first
 * instruction (offset < 0) it is the code's first line, as in the interpreter.
 */
uint32_t torsh_python_line(enum cpython_lines how, const uint8_t *table, size_t n_bytes,
			   uint32_t first_line, int32_t offset);

#endif
