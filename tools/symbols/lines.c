/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/lines.h"

#include <dwarf.h>

#include "tools/symbols/named_files.h"

/*
 * Prefers the mangled name, which has the parameter types. For C the plain name is better: linkage
 * names there are aliases like "__GI_f".
 */
static const char *function_name(Dwarf_Die *die)
{
	static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		Dwarf_Attribute attribute;
		const char *name =
			dwarf_formstring(dwarf_attr_integrate(die, names[i], &attribute));

		if (name && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R'))
			return name;
	}
	return dwarf_diename(die);
}

static Dwarf_Word unsigned_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) < 0)
		return 0;
	return value;
}

/* Read where the inlined function was called. */
static void read_call(Dwarf_Die *die, Dwarf_Files *files, size_t n_files, struct line_frame *caller)
{
	Dwarf_Word file = unsigned_attribute(die, DW_AT_call_file);

	caller->line = (int)unsigned_attribute(die, DW_AT_call_line);
	if (files && file < n_files)
		caller->file = dwarf_filesrc(files, file, NULL, NULL);
}

/*
 * Returns the unit that describes the code, which may be in another file (.dwo) than the line
 * table.
 */
static Dwarf_Die code_unit(Dwarf_Die *unit)
{
	Dwarf_Die split = {0};

	if (dwarf_cu_info(unit->cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) == 0 && split.addr)
		return split;
	return *unit;
}

static size_t fill_frames(Dwarf_Die *unit, const Dwarf_Die *scopes, size_t n_scopes,
			  struct line_frame *frames, size_t n_max)
{
	Dwarf_Files *files = NULL;
	size_t n_files = 0, n = 0;

	if (dwarf_getsrcfiles(unit, &files, &n_files) != 0)
		files = NULL;
	for (size_t i = 0; i < n_scopes; i++) {
		Dwarf_Die scope = scopes[i];
		int tag = dwarf_tag(&scope);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram &&
		    tag != DW_TAG_entry_point)
			continue;
		frames[n].name = function_name(&scope);
		frames[n].is_inlined = tag == DW_TAG_inlined_subroutine;
		if (!frames[n].is_inlined || n + 1 == n_max)
			return n + 1;
		n++;
		frames[n] = (struct line_frame){0};
		read_call(&scope, files, n_files, &frames[n]);
	}
	/* One more for the function around the inlined ones: it has no DIE, only a line. */
	return n ? n + 1 : 0;
}

static size_t find_lines(struct object *object, uint64_t address, struct line_frame *frames,
			 size_t n_max)
{
	const Dwarf_Die *scopes;
	Dwarf_Die unit, code;
	Dwarf_Addr bias = 0, pc;
	Dwarf_Line *line;
	size_t n, n_scopes;

	if (!torsh_object_unit(object, address, &unit, &bias))
		return 0;
	pc = address + object->bias - bias;
	frames[0] = (struct line_frame){0};
	line = dwarf_getsrc_die(&unit, pc);
	if (line) {
		frames[0].file = dwarf_linesrc(line, NULL, NULL);
		dwarf_lineno(line, &frames[0].line);
	}
	code = code_unit(&unit);
	scopes = torsh_functions_scopes(&object->functions, &code, pc, &n_scopes);
	n = fill_frames(&code, scopes, n_scopes, frames, n_max);
	if (n == 0 && frames[0].file)
		n = 1;
	return n;
}

size_t torsh_lines_find(struct object *object, uint64_t address, struct line_frame *frames,
			size_t n_max)
{
	bool was_guarded = torsh_named_files_guard(true);
	size_t n = find_lines(object, address, frames, n_max);

	torsh_named_files_guard(was_guarded);
	return n;
}
