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
	uint8_t *kinds; /* by address: a kind + 1, 0: not looked up */
	/* by address: 1 it has none, or isn't one; 2 it has one, or is one; 0: not looked up */
	uint8_t *packages, *imports;
};

/* Start; symbols may be NULL. The caller ends it. */
void torsh_address_kinds_start(struct address_kinds *kinds, const struct recorded_process *process,
			       struct symbols *symbols);

/* Free what is cached. */
void torsh_address_kinds_end(struct address_kinds *kinds);

/* Returns the kind of an address; FRAME_CUT if it is no frame. */
enum frame_kind torsh_address_kind(struct address_kinds *kinds, uint32_t address);

/* Returns true if torsh_address_package has a name for the address. */
bool torsh_address_has_package(struct address_kinds *kinds, uint32_t address);

/* Returns true if the address is the function of the import system that runs a module. */
bool torsh_address_is_import(struct address_kinds *kinds, uint32_t address);

/* As torsh_frame_package, for an address. */
bool torsh_address_package(const struct recorded_process *process, uint32_t address, char *out,
			   size_t n_out);

#endif
