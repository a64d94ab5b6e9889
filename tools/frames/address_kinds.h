/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The kinds of a process's recorded addresses, without DWARF: for lists with thousands of stacks
 * that print only a few.
 */
#ifndef TORSH_FRAMES_ADDRESS_KINDS_H
#define TORSH_FRAMES_ADDRESS_KINDS_H

#include "tools/frames/frame_kind.h"

struct address_kinds {
	const struct recorded_process *process;
	struct symbols *symbols;
	const char *directory;
	uint16_t *facts; /* by address: enum address_fact and kind, ored; 0: not looked up */
	/* likewise by module and by function: of an address without a name of its own */
	uint16_t *modules, *functions;
};

/* What is known of an address, beside its kind. */
enum address_fact {
	ADDRESS_KIND_IS_KNOWN = 0x10,
	ADDRESS_SOURCE_IS_KNOWN = 0x20, /* the facts below */
	ADDRESS_HAS_PACKAGE = 0x40,
	ADDRESS_IS_IMPORT = 0x80,
	ADDRESS_CALLS_C = 0x100,
};

#define ADDRESS_KIND_MASK 0x0fu

/* Start; symbols may be NULL. The caller ends it. */
void torsh_address_kinds_start(struct address_kinds *kinds, const struct recorded_process *process,
			       struct symbols *symbols);

/* Free what is cached. */
void torsh_address_kinds_end(struct address_kinds *kinds);

/* Look up the kind of an address of the recording. Returns its facts. */
uint16_t torsh_address_find_kind(struct address_kinds *kinds, uint32_t address);

/* Likewise the facts that are not its kind. */
uint16_t torsh_address_find_source(struct address_kinds *kinds, uint32_t address);

/* Returns the kind of an address; FRAME_CUT if it is no frame. */
static inline enum frame_kind torsh_address_kind(struct address_kinds *kinds, uint32_t address)
{
	uint16_t facts;

	if (address >= kinds->process->tables->n_addresses)
		return FRAME_CUT;
	facts = kinds->facts[address];
	if (!(facts & ADDRESS_KIND_IS_KNOWN))
		facts = torsh_address_find_kind(kinds, address);
	return (enum frame_kind)(facts & ADDRESS_KIND_MASK);
}

static inline bool torsh_address_has(struct address_kinds *kinds, uint32_t address,
				     enum address_fact fact)
{
	uint16_t facts;

	if (address >= kinds->process->tables->n_addresses)
		return false;
	facts = kinds->facts[address];
	if (!(facts & ADDRESS_SOURCE_IS_KNOWN))
		facts = torsh_address_find_source(kinds, address);
	return facts & fact;
}

/* Returns true if torsh_address_package has a name for the address. */
static inline bool torsh_address_has_package(struct address_kinds *kinds, uint32_t address)
{
	return torsh_address_has(kinds, address, ADDRESS_HAS_PACKAGE);
}

/* Returns true if the address is the function of the import system that runs a module. */
static inline bool torsh_address_is_import(struct address_kinds *kinds, uint32_t address)
{
	return torsh_address_has(kinds, address, ADDRESS_IS_IMPORT);
}

/* Returns true if the address is in what calls C for a line of Python: ctypes, cffi. */
static inline bool torsh_address_calls_c(struct address_kinds *kinds, uint32_t address)
{
	return torsh_address_has(kinds, address, ADDRESS_CALLS_C);
}

/* As torsh_frame_package, for an address. */
bool torsh_address_package(const struct recorded_process *process, uint32_t address, char *out,
			   size_t n_out);

#endif
