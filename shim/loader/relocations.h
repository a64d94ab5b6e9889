/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The places in a loaded object by which its code reaches what other objects define. Its tables may
 * be damaged: only its segments are read.
 */
#ifndef TORSH_SHIM_LOADER_RELOCATIONS_H
#define TORSH_SHIM_LOADER_RELOCATIONS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/loader/elf_symbol.h"

/*
 * name: of the definition elsewhere. at: where its address is stored, or if it is a function that
 * the loader hasn't bound yet, an address in the object itself; torsh_elf_address tells whether the
 * object has such a place. symbol: its number in the object's table.
 */
struct torsh_relocation {
	const char *name;
	uintptr_t at;
	bool is_function;
	size_t symbol;
};

typedef void torsh_relocation_visit(void *context, const struct torsh_relocation *place);

/* The object's dynamic section, from its program headers; NULL if it has none. */
const void *torsh_relocations_dynamic(const struct torsh_elf_image *image);

/* Whether the loader makes the place read-only when it has relocated the object. */
bool torsh_relocations_is_relro(const struct torsh_elf_image *image, const void *place);

/*
 * The version that the object requires of the symbol with that number, as "GLIBC_2.17"; NULL: none,
 * or the tables are damaged.
 */
const char *torsh_relocations_version(const struct torsh_elf_image *image, const void *dynamic,
				      size_t symbol);

/* Visit every place of the object with this dynamic section. */
void torsh_relocations_visit(const struct torsh_elf_image *image, const void *dynamic,
			     torsh_relocation_visit *visit, void *context);

#endif
