/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Symbol lookup in one loaded object, by its hash table in memory: takes no lock and allocates
 * nothing, unlike dlsym(), so hooks may call it. Tables may be damaged: only the object's segments
 * are read.
 */
#ifndef TORSH_SHIM_LOADER_ELF_SYMBOL_H
#define TORSH_SHIM_LOADER_ELF_SYMBOL_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The definition of name in the object, and with n_bytes its size. NULL if there is none, if a
 * resolver chooses it, or if the program headers are not found (a library linked to an address
 * other than 0).
 */
void *torsh_elf_symbol(const struct link_map *map, const char *name, size_t *n_bytes);

/* An object's memory, from its program headers. */
struct torsh_elf_image {
	uintptr_t bias; /* added to the addresses in the file */
	const ElfW(Phdr) * segments;
	size_t n;
};

/*
 * Find the object's program headers, by one system call. False as torsh_elf_symbol returns NULL.
 */
bool torsh_elf_describe(const struct link_map *map, struct torsh_elf_image *image);

/* The address that an entry of the dynamic section points to. */
uintptr_t torsh_elf_locate(const struct torsh_elf_image *image, const ElfW(Dyn) * entry);

/* address, if n_bytes there can be read; NULL: they are not all in one segment. */
const void *torsh_elf_at(const struct torsh_elf_image *image, uintptr_t address, size_t n_bytes);

/* address, if the object has a pointer-sized, aligned piece of data there; otherwise NULL. */
void **torsh_elf_address(const struct torsh_elf_image *image, uintptr_t address);

/* The string at address; NULL if it does not end in its segment. */
const char *torsh_elf_text(const struct torsh_elf_image *image, uintptr_t address);

/* Like torsh_elf_symbol, in an image with its dynamic section at dynamic. */
void *torsh_elf_symbol_in(const struct torsh_elf_image *image, const void *dynamic,
			  const char *name, size_t *n_bytes);

#endif
