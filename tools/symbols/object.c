/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/object.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/regular.h"

/* The module's file is given; only its debug files are searched for. */
static int find_no_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
		       char **file, Elf **elf)
{
	(void)module, (void)user, (void)name, (void)base, (void)file, (void)elf;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_no_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static bool is_build_id(Dwfl_Module *module, const uint8_t *build_id, size_t n_build_id)
{
	const unsigned char *bits;
	GElf_Addr address;
	int n = dwfl_module_build_id(module, &bits, &address);

	return n > 0 && (size_t)n == n_build_id && memcmp(bits, build_id, n_build_id) == 0;
}

void torsh_object_open(struct object *object, const char *path, const uint8_t *build_id,
		       size_t n_build_id)
{
	int fd = torsh_open_regular(path);
	GElf_Addr bias = 0;

	*object = (struct object){.state = OBJECT_MISSING};
	object->dwfl = fd < 0 ? NULL : dwfl_begin(&callbacks);
	if (object->dwfl) {
		dwfl_report_begin(object->dwfl);
		/* On success the module owns the descriptor. */
		object->module = dwfl_report_elf(object->dwfl, path, path, fd, 0, true);
		dwfl_report_end(object->dwfl, NULL, NULL);
	}
	if (fd >= 0 && !object->module)
		close(fd);
	if (!object->module || !dwfl_module_getelf(object->module, &bias))
		return;
	object->bias = bias;
	object->state = OBJECT_USABLE;
	if (build_id && n_build_id && !is_build_id(object->module, build_id, n_build_id))
		object->state = OBJECT_CHANGED;
}

void torsh_object_close(struct object *object)
{
	torsh_symbol_table_free(&object->symbols);
	torsh_die_ranges_free(&object->units);
	torsh_functions_free(&object->functions);
	if (object->dwfl)
		dwfl_end(object->dwfl);
	*object = (struct object){.state = OBJECT_MISSING};
}

const struct elf_symbol *torsh_object_symbol(struct object *object, uint64_t address)
{
	if (object->state != OBJECT_USABLE)
		return NULL;
	if (!object->symbols.is_read) {
		const char *path =
			dwfl_module_info(object->module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

		torsh_symbol_table_read(&object->symbols, object->module, path, object->bias);
	}
	return torsh_symbol_table_find(&object->symbols, address);
}

/*
 * Read the address ranges of the units themselves. .debug_aranges is not used: some compilers
 * write none, and libdw returns the last range there that begins before the address, even if it
 * ends before it.
 */
static void read_units(struct object *object)
{
	Dwarf_Die *die = NULL;
	Dwarf_Addr bias;

	object->has_units = true;
	while ((die = dwfl_module_nextcu(object->module, die, &bias)))
		torsh_die_ranges_add(&object->units, die, bias);
	torsh_die_ranges_sort(&object->units);
}

bool torsh_object_unit(struct object *object, uint64_t address, Dwarf_Die *unit,
		       Dwarf_Addr *dwarf_bias)
{
	const Dwarf_Die *found;

	if (object->state != OBJECT_USABLE || !dwfl_module_getdwarf(object->module, dwarf_bias))
		return false;
	if (!object->has_units)
		read_units(object);
	found = torsh_die_ranges_find(&object->units, address + object->bias);
	if (found)
		*unit = *found;
	return found;
}
