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
		.kinds = torsh_need_items(NULL, 0, process->n_addresses, 1),
		.packages = torsh_need_items(NULL, 0, process->n_addresses, 1),
		.imports = torsh_need_items(NULL, 0, process->n_addresses, 1),
	};
}

void torsh_address_kinds_end(struct address_kinds *kinds)
{
	free(kinds->kinds);
	free(kinds->packages);
	free(kinds->imports);
	*kinds = (struct address_kinds){0};
}

static struct frame frame_of(const struct recorded_process *process, uint32_t address)
{
	uint32_t flags = process->addresses[address].flags;
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

enum frame_kind torsh_address_kind(struct address_kinds *kinds, uint32_t address)
{
	enum frame_kind kind;
	struct frame frame;
	const char *name;

	if (address >= kinds->process->n_addresses)
		return FRAME_CUT;
	if (kinds->kinds[address])
		return (enum frame_kind)(kinds->kinds[address] - 1);
	frame = frame_of(kinds->process, address);
	kind = torsh_frame_kind(&frame, kinds->directory);
	/* The name matters only for frames that may be the user's own; looking it up takes time. */
	if (kind == FRAME_OWN && !frame.is_python) {
		name = torsh_symbols_name(kinds->symbols, kinds->process, address);
		frame.function = name && kinds->symbols
					 ? torsh_symbols_demangle(kinds->symbols, name)
					 : name;
		kind = torsh_frame_kind(&frame, kinds->directory);
	}
	kinds->kinds[address] = (uint8_t)(kind + 1);
	return kind;
}

bool torsh_address_has_package(struct address_kinds *kinds, uint32_t address)
{
	char package[2];

	if (address >= kinds->process->n_addresses)
		return false;
	if (!kinds->packages[address])
		kinds->packages[address] =
			torsh_address_package(kinds->process, address, package, sizeof(package))
				? 2
				: 1;
	return kinds->packages[address] == 2;
}

static bool is_import(const struct recorded_process *process, uint32_t address)
{
	const struct recorded_function *function = torsh_recording_function(process, address);

	return function && function->file && function->name &&
	       !strcmp(function->file, "<frozen importlib._bootstrap>") &&
	       !strcmp(function->name, "_find_and_load");
}

bool torsh_address_is_import(struct address_kinds *kinds, uint32_t address)
{
	if (address >= kinds->process->n_addresses)
		return false;
	if (!kinds->imports[address])
		kinds->imports[address] = is_import(kinds->process, address) ? 2 : 1;
	return kinds->imports[address] == 2;
}

bool torsh_address_package(const struct recorded_process *process, uint32_t address, char *out,
			   size_t n_out)
{
	struct frame frame;

	*out = '\0';
	if (address >= process->n_addresses)
		return false;
	frame = frame_of(process, address);
	return torsh_frame_package(&frame, out, n_out);
}
