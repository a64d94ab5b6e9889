/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TORSH_SHIM_ALLOCATORS_OPERATORS_NEW_BIND_H
#define TORSH_SHIM_ALLOCATORS_OPERATORS_NEW_BIND_H

#include <link.h>
#include <stdbool.h>

#include "shim/loader/elf_symbol.h"

/*
 * Where the loader has stored what is called: of the call in this object that returns to caller, or
 * of a function that does nothing but jump to another object's. NULL for other code.
 */
void **torsh_operators_called_place(const struct torsh_elf_image *image, const void *caller);
void **torsh_operators_jumped_place(const struct torsh_elf_image *image, const void *function);

/*
 * Bind an object's calls of an operator to its real definition, as the loader would without the
 * agent. place: of one such call; exported: the agent's function, to which the loader has bound it;
 * is_own: the definition lies in the object itself. Returns whether it did: not in read-only
 * places, or where the object might outlive the definition.
 */
bool torsh_operators_bind(const struct link_map *map, const struct torsh_elf_image *image,
			  void **place, const void *exported, void *definition, bool is_own);

#endif
