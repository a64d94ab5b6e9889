/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The functions of compilation units by address. libdw scans a whole unit for each address; here
 * each unit is scanned once. Addresses are DWARF's.
 */
#ifndef TORSH_SYMBOLS_FUNCTIONS_H
#define TORSH_SYMBOLS_FUNCTIONS_H

#include <elfutils/libdw.h>
#include <stddef.h>

#include "tools/symbols/die_ranges.h"

struct unit_functions {
	const Dwarf_CU *unit;
	struct die_ranges ranges; /* of each DW_TAG_subprogram */
};

struct functions {
	struct unit_functions *units; /* those that were looked up */
	size_t n, room;
	Dwarf_Die *scopes; /* of the last address */
	size_t scopes_room;
};

/*
 * Returns the function of the unit at the address, with the blocks and inlined functions around it:
 * *n DIEs from the innermost to the function, valid until the next call. *n is 0 if the unit has no
 * such function.
 */
const Dwarf_Die *torsh_functions_scopes(struct functions *functions, Dwarf_Die *unit, Dwarf_Addr pc,
					size_t *n);

/* Free the functions. */
void torsh_functions_free(struct functions *functions);

#endif
