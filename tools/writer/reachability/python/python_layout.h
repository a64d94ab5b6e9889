/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The CPython interpreter (3.8 to 3.14) of another process, and where it keeps frames. */
#ifndef TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_LAYOUT_H
#define TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/cpython/cpython_layout.h"
#include "tools/writer/reachability/image/memory_areas.h"
#include "tools/writer/reachability/image/memory_reader.h"

struct python_layout {
	bool is_known; /* false: there is no interpreter, or another version */
	uint64_t runtime; /* address of _PyRuntime */
	uint64_t code_type; /* address of PyCode_Type; 0: not found */
	struct cpython_layout at;
};

/* Find it by the dynamic symbols of the interpreter's module. */
void torsh_python_layout_find(struct python_layout *layout, const struct memory_areas *areas,
			      const struct memory_reader *reader);

#endif
