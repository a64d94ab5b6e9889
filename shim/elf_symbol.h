/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A name looked up among what one loaded object exports, by its own hash table in memory: no lock is taken and nothing
 * is allocated, unlike with dlsym(), so that hooks may ask.
 */
#ifndef TORSH_SHIM_ELF_SYMBOL_H
#define TORSH_SHIM_ELF_SYMBOL_H

#include <link.h>
#include <stddef.h>

/* Where the object defines name, and with n_bytes its size; NULL when it doesn't. */
void *torsh_elf_symbol(const struct link_map *map, const char *name, size_t *n_bytes);

/* What an entry of the object's dynamic section points to. */
const void *torsh_elf_locate(const struct link_map *map, const ElfW(Dyn) * entry);

#endif
