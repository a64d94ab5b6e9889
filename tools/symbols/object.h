/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The file of a module, as elfutils sees it: its ELF symbols, its DWARF (also in separate files,
 * found by build-id, .gnu_debuglink, or debuginfod where DEBUGINFOD_URLS is set). Addresses are
 * those of its program headers.
 */
#ifndef TORSH_SYMBOLS_OBJECT_H
#define TORSH_SYMBOLS_OBJECT_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/symbols/die_ranges.h"
#include "tools/symbols/functions.h"
#include "tools/symbols/symbol_table.h"

enum object_state {
	OBJECT_USABLE,
	OBJECT_MISSING, /* the file can't be read, or is not ELF */
	OBJECT_CHANGED, /* its build-id differs from the recorded one */
};

struct object {
	enum object_state state;
	Dwfl *dwfl;
	Dwfl_Module *module;
	uint64_t bias; /* of dwfl's address space: 0 for almost all files */

	struct symbol_table symbols; /* once they were read */

	bool has_units;
	struct die_ranges units; /* of the compilation units, in dwfl's address space */

	struct functions functions; /* of the compilation units of earlier look-ups */
};

/* Open the file; build_id NULL: any. Never fails: see state. */
void torsh_object_open(struct object *object, const char *path, const uint8_t *build_id,
		       size_t n_build_id);

/* Close the file and free its tables. */
void torsh_object_close(struct object *object);

/*
 * Returns the function symbol that covers the address, or NULL; valid until the next call, except
 * for its name.
 */
const struct elf_symbol *torsh_object_symbol(struct object *object, uint64_t address);

/*
 * Returns the compilation unit that covers the address. Its addresses are dwfl's minus *dwarf_bias.
 */
bool torsh_object_unit(struct object *object, uint64_t address, Dwarf_Die *unit,
		       Dwarf_Addr *dwarf_bias);

#endif
