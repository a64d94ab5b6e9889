/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A name looked up among what one loaded object exports, by its own hash table in memory: no lock is taken and nothing
 * is allocated, unlike with dlsym(), so that hooks may ask. Tables may be damaged: only the object's segments are read.
 */
#ifndef TORSH_SHIM_ELF_SYMBOL_H
#define TORSH_SHIM_ELF_SYMBOL_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where the object defines name, and with n_bytes its size; NULL when it doesn't, or when its program headers can't be
 * found (a library that was linked to an address other than 0).
 */
void *torsh_elf_symbol(const struct link_map *map, const char *name, size_t *n_bytes);

/* What an entry of the object's dynamic section points to. */
const void *torsh_elf_locate(const struct link_map *map, const ElfW(Dyn) * entry);

/* An object's memory as its program headers describe it. */
struct torsh_elf_image {
	uintptr_t bias; /* what was added to the addresses in the file */
	const ElfW(Phdr) * segments;
	size_t n;
};

/* The same in an object that is known, whose dynamic section lies at dynamic. */
void *torsh_elf_symbol_in(const struct torsh_elf_image *image, const void *dynamic, const char *name, size_t *n_bytes);

#endif
