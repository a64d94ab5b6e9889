/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the DIE that describes an address, by the address ranges of compilation units or functions.
 */
#ifndef TORSH_SYMBOLS_DIE_RANGES_H
#define TORSH_SYMBOLS_DIE_RANGES_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

struct die_range {
	uint64_t start, end;
	uint64_t reach; /* the largest end of this range and those before it */
	Dwarf_Die die;
};

struct die_ranges {
	struct die_range *items; /* by start once sorted */
	size_t n, room;
};

/*
 * Add the ranges of die, moved by bias. Code that the linker discarded is left out: its ranges
 * begin at address 0, or end before they begin.
 */
void torsh_die_ranges_add(struct die_ranges *ranges, Dwarf_Die *die, uint64_t bias);

/* Call once, after the last add and before the first find. */
void torsh_die_ranges_sort(struct die_ranges *ranges);

/*
 * Returns the innermost range that covers the address, or NULL; of equal ones the first in the
 * file, because the linker keeps that copy of a function. Owned by the ranges.
 */
const Dwarf_Die *torsh_die_ranges_find(const struct die_ranges *ranges, uint64_t address);

/* Free the ranges. */
void torsh_die_ranges_free(struct die_ranges *ranges);

#endif
