/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* DWARF information about an address: its line, and the functions that are inlined there. */
#ifndef TORSH_SYMBOLS_LINES_H
#define TORSH_SYMBOLS_LINES_H

#include "tools/symbols/object.h"

struct line_frame {
	/* mangled if the language mangles names; NULL: unknown. Owned by the object */
	const char *name;
	const char *file; /* owned by the object */
	int line; /* 0: unknown */
	bool is_inlined;
};

/*
 * Fill frames, innermost first; the last one is the function that contains the code. Returns their
 * number; 0 without DWARF.
 */
size_t torsh_lines_find(struct object *object, uint64_t address, struct line_frame *frames,
			size_t n_max);

#endif
