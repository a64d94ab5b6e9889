/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What DWARF has for an address: its line, and the functions that were inlined there. */
#ifndef TORSH_SYMBOLS_LINES_H
#define TORSH_SYMBOLS_LINES_H

#include "tools/symbols/object.h"

struct line_frame {
	/* mangled where the language does that; NULL: not known. Belongs to the object */
	const char *name;
	const char *file; /* belongs to the object */
	int line; /* 0: not known */
	bool is_inlined;
};

/*
 * Fill frames, innermost first; the last one is the function that the code belongs to. Returns how
 * many; 0 when DWARF has nothing here.
 */
size_t torsh_lines_find(struct object *object, uint64_t address, struct line_frame *frames,
			size_t n_max);

#endif
