/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A name looked up among what one loaded object exports, by its own hash table in memory: no lock
 * is taken and nothing is allocated, unlike with dlsym(), so that hooks may ask. Tables may be
 * damaged: only the object's segments are read.
 */
#ifndef TORSH_SHIM_LOADER_ELF_SYMBOL_H
#define TORSH_SHIM_LOADER_ELF_SYMBOL_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where the object defines name, and with n_bytes its size; NULL when it doesn't, or when its
 * program headers can't be found (a library that was linked to an address other than 0).
 */
void *torsh_elf_symbol(const struct link_map *map, const char *name, size_t *n_bytes);

/* An object's memory as its program headers describe it. */
struct torsh_elf_image {
	uintptr_t bias; /* what was added to the addresses in the file */
	const ElfW(Phdr) * segments;
	size_t n;
};

/* What an entry of the object's dynamic section points to. */
uintptr_t torsh_elf_locate(const struct torsh_elf_image *image, const ElfW(Dyn) * entry);

/*
 * address, where that many bytes of the object can be read; NULL: they are not all in one segment.
 */
const void *torsh_elf_at(const struct torsh_elf_image *image, uintptr_t address, size_t n_bytes);

/*
 * address, where the object has data that an address may stand in; NULL: it doesn't, or that is
 * askew.
 */
void **torsh_elf_address(const struct torsh_elf_image *image, uintptr_t address);

/* The text that begins there; NULL where it doesn't end in its segment. */
const char *torsh_elf_text(const struct torsh_elf_image *image, uintptr_t address);

/* torsh_elf_symbol in an object that is known, whose dynamic section lies at dynamic. */
void *torsh_elf_symbol_in(const struct torsh_elf_image *image, const void *dynamic,
			  const char *name, size_t *n_bytes);

#endif
