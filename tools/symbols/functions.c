/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/symbols/functions.h. */
#include "tools/symbols/functions.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tools/die.h"

static void add_ranges(struct unit_functions *unit, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		unit->ranges = torsh_need_room(unit->ranges, unit->n, &unit->room, sizeof(*unit->ranges));
		unit->ranges[unit->n++] = (struct function_range){.start = start, .end = end, .die = *die};
	}
}

static void add_functions(struct unit_functions *unit, Dwarf_Die *parent)
{
	Dwarf_Die child;

	if (dwarf_child(parent, &child) != 0)
		return;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_subprogram)
			add_ranges(unit, &child);
		else if (tag == DW_TAG_namespace || tag == DW_TAG_module)
			add_functions(unit, &child);
	} while (dwarf_siblingof(&child, &child) == 0);
}

static int compare_ranges(const void *a, const void *b)
{
	const struct function_range *one = a, *other = b;

	return one->start < other->start ? -1 : one->start > other->start;
}

static const struct unit_functions *functions_of(struct functions *functions, Dwarf_Die *die)
{
	struct unit_functions *unit;

	for (size_t i = functions->n; i-- > 0;) {
		if (functions->units[i].unit == die->cu)
			return &functions->units[i];
	}
	functions->units = torsh_need_room(functions->units, functions->n, &functions->room, sizeof(*functions->units));
	unit = &functions->units[functions->n++];
	*unit = (struct unit_functions){.unit = die->cu};
	add_functions(unit, die);
	if (unit->n)
		qsort(unit->ranges, unit->n, sizeof(*unit->ranges), compare_ranges);
	return unit;
}

static const Dwarf_Die *find_function(const struct unit_functions *unit, Dwarf_Addr pc)
{
	size_t low = 0, high = unit->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (unit->ranges[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low && pc < unit->ranges[low - 1].end ? &unit->ranges[low - 1].die : NULL;
}

/* The child of a scope that the address lies in. */
static bool find_inner(Dwarf_Die *scope, Dwarf_Addr pc, Dwarf_Die *inner)
{
	if (dwarf_child(scope, inner) != 0)
		return false;
	do {
		int tag = dwarf_tag(inner);

		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_subprogram) &&
		    dwarf_haspc(inner, pc) > 0)
			return true;
	} while (dwarf_siblingof(inner, inner) == 0);
	return false;
}

static void turn_around(Dwarf_Die *scopes, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		Dwarf_Die first = scopes[i];

		scopes[i] = scopes[n - 1 - i];
		scopes[n - 1 - i] = first;
	}
}

const Dwarf_Die *torsh_functions_scopes(struct functions *functions, Dwarf_Die *unit, Dwarf_Addr pc, size_t *n)
{
	const Dwarf_Die *function = find_function(functions_of(functions, unit), pc);
	Dwarf_Die scope;

	*n = 0;
	if (!function)
		return NULL;
	scope = *function;
	do {
		functions->scopes =
			torsh_need_room(functions->scopes, *n, &functions->scopes_room, sizeof(*functions->scopes));
		functions->scopes[(*n)++] = scope;
	} while (find_inner(&functions->scopes[*n - 1], pc, &scope));
	turn_around(functions->scopes, *n);
	return functions->scopes;
}

void torsh_functions_free(struct functions *functions)
{
	for (size_t i = 0; i < functions->n; i++)
		free(functions->units[i].ranges);
	free(functions->units);
	free(functions->scopes);
	*functions = (struct functions){0};
}
