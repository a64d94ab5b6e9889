/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/frames/address_kinds.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/die.h"

void torsh_address_kinds_start(struct address_kinds *kinds, const struct recorded_process *process,
			       struct symbols *symbols)
{
	*kinds = (struct address_kinds){
		.process = process,
		.symbols = symbols,
		.directory = torsh_working_directory(),
		.facts = torsh_need_items(NULL, 0, process->tables->n_addresses, sizeof(uint16_t)),
		.modules = torsh_need_items(NULL, 0, process->tables->n_modules, sizeof(uint16_t)),
		.functions =
			torsh_need_items(NULL, 0, process->tables->n_functions, sizeof(uint16_t)),
	};
}

void torsh_address_kinds_end(struct address_kinds *kinds)
{
	free(kinds->facts);
	free(kinds->modules);
	free(kinds->functions);
	*kinds = (struct address_kinds){0};
}

static struct frame frame_of(const struct recorded_process *process, uint32_t address)
{
	uint32_t flags = process->tables->addresses[address].flags;
	const struct recorded_function *function = torsh_recording_function(process, address);
	const struct recorded_module *module = torsh_recording_module(process, address);

	if (flags > ADDRESS_PYTHON)
		return (struct frame){.cut = ""};
	if (flags == ADDRESS_PYTHON)
		return (struct frame){.is_python = true,
				      .function = function ? function->name : NULL,
				      .file = function ? function->file : NULL};
	return (struct frame){.module = module ? module->path : NULL};
}

/* Returns the facts that all addresses of a module or function share; NULL: it has none. */
static uint16_t *shared_facts(struct address_kinds *kinds, uint32_t address)
{
	const struct recorded_process *process = kinds->process;
	uint32_t flags = process->tables->addresses[address].flags;
	const struct recorded_function *function = torsh_recording_function(process, address);
	const struct recorded_module *module = torsh_recording_module(process, address);

	if (flags == ADDRESS_PYTHON && function)
		return &kinds->functions[function - process->tables->functions];
	return flags < ADDRESS_PYTHON && module ? &kinds->modules[module - process->tables->modules]
						: NULL;
}

static uint16_t make_kind(struct address_kinds *kinds, const struct frame *frame)
{
	return (uint16_t)(ADDRESS_KIND_IS_KNOWN | torsh_frame_kind(frame, kinds->directory));
}

uint16_t torsh_address_find_kind(struct address_kinds *kinds, uint32_t address)
{
	uint16_t *shared = shared_facts(kinds, address), *facts = &kinds->facts[address];
	struct frame frame = frame_of(kinds->process, address);
	uint16_t found = shared ? *shared : 0;
	const char *name;

	if (!(found & ADDRESS_KIND_IS_KNOWN))
		found = make_kind(kinds, &frame);
	if (shared)
		*shared |= found;
	/* The name matters only for frames that may be the user's own; looking it up takes time. */
	if ((found & ADDRESS_KIND_MASK) == FRAME_OWN && !frame.is_python) {
		name = torsh_symbols_name(kinds->symbols, kinds->process, address);
		frame.function = name && kinds->symbols
					 ? torsh_symbols_demangle(kinds->symbols, name)
					 : name;
		found = make_kind(kinds, &frame);
	}
	*facts |= found & (ADDRESS_KIND_IS_KNOWN | ADDRESS_KIND_MASK);
	return *facts;
}

static bool is_import(const struct recorded_process *process, uint32_t address)
{
	const struct recorded_function *function = torsh_recording_function(process, address);

	return function && function->file && function->name &&
	       !strcmp(function->file, "<frozen importlib._bootstrap>") &&
	       !strcmp(function->name, "_find_and_load");
}

static bool calls_c(const struct recorded_process *process, uint32_t address)
{
	static const char *const callers[] = {"_ctypes.", "libffi", "_cffi_backend."};
	const struct recorded_module *module = torsh_recording_module(process, address);
	const char *slash = module ? strrchr(module->path, '/') : NULL;

	for (size_t i = 0; slash && i < sizeof(callers) / sizeof(*callers); i++)
		if (!strncmp(slash + 1, callers[i], strlen(callers[i])))
			return true;
	return false;
}

uint16_t torsh_address_find_source(struct address_kinds *kinds, uint32_t address)
{
	uint16_t *shared = shared_facts(kinds, address), *facts = &kinds->facts[address];
	uint16_t found = shared ? *shared : 0;
	char package[2];

	if (!(found & ADDRESS_SOURCE_IS_KNOWN)) {
		found = ADDRESS_SOURCE_IS_KNOWN;
		if (torsh_address_package(kinds->process, address, package, sizeof(package)))
			found |= ADDRESS_HAS_PACKAGE;
		if (is_import(kinds->process, address))
			found |= ADDRESS_IS_IMPORT;
		if (calls_c(kinds->process, address))
			found |= ADDRESS_CALLS_C;
	}
	if (shared)
		*shared |= found;
	*facts |= found & ~(ADDRESS_KIND_IS_KNOWN | ADDRESS_KIND_MASK);
	return *facts;
}

bool torsh_address_package(const struct recorded_process *process, uint32_t address, char *out,
			   size_t n_out)
{
	struct frame frame;

	*out = '\0';
	if (address >= process->tables->n_addresses)
		return false;
	frame = frame_of(process, address);
	return torsh_frame_package(&frame, out, n_out);
}
