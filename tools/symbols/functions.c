/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/functions.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"

static void add_functions(struct unit_functions *unit, Dwarf_Die *parent)
{
	Dwarf_Die child;

	if (dwarf_child(parent, &child) != 0)
		return;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_subprogram)
			torsh_die_ranges_add(&unit->ranges, &child, 0);
		else if (tag == DW_TAG_namespace || tag == DW_TAG_module)
			add_functions(unit, &child);
	} while (dwarf_siblingof(&child, &child) == 0);
}

static const struct unit_functions *functions_of(struct functions *functions, Dwarf_Die *die)
{
	struct unit_functions *unit;

	for (size_t i = functions->n; i-- > 0;) {
		if (functions->units[i].unit == die->cu)
			return &functions->units[i];
	}
	functions->units = torsh_array_reserve(functions->units, functions->n, &functions->room,
					       sizeof(*functions->units));
	unit = &functions->units[functions->n++];
	*unit = (struct unit_functions){.unit = die->cu};
	add_functions(unit, die);
	torsh_die_ranges_sort(&unit->ranges);
	return unit;
}

/* Find the child of a scope that contains the address. */
static bool find_inner(Dwarf_Die *scope, Dwarf_Addr pc, Dwarf_Die *inner)
{
	if (dwarf_child(scope, inner) != 0)
		return false;
	do {
		int tag = dwarf_tag(inner);

		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
		     tag == DW_TAG_subprogram) &&
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

const Dwarf_Die *torsh_functions_scopes(struct functions *functions, Dwarf_Die *unit, Dwarf_Addr pc,
					size_t *n)
{
	const Dwarf_Die *function =
		torsh_die_ranges_find(&functions_of(functions, unit)->ranges, pc);
	Dwarf_Die scope;

	*n = 0;
	if (!function)
		return NULL;
	scope = *function;
	do {
		functions->scopes = torsh_array_reserve(
			functions->scopes, *n, &functions->scopes_room, sizeof(*functions->scopes));
		functions->scopes[(*n)++] = scope;
	} while (find_inner(&functions->scopes[*n - 1], pc, &scope));
	turn_around(functions->scopes, *n);
	return functions->scopes;
}

void torsh_functions_free(struct functions *functions)
{
	for (size_t i = 0; i < functions->n; i++)
		torsh_die_ranges_free(&functions->units[i].ranges);
	free(functions->units);
	free(functions->scopes);
	*functions = (struct functions){0};
}
