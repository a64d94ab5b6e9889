/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TORSH_SHIM_ALLOCATORS_OPERATORS_NEW_BIND_H
#define TORSH_SHIM_ALLOCATORS_OPERATORS_NEW_BIND_H

#include <link.h>
#include <stdbool.h>

#include "shim/loader/elf_symbol.h"

/*
 * Bind an object's calls of an operator to its real definition, as the loader would without the
 * agent. caller: the return address of one such call, in this object; exported: the agent's
 * function, to which the loader has bound it; is_own: the definition lies in the object itself.
 * Returns whether it did: not in the calls' read-only places, in unusual ones, or where the object
 * might outlive the definition.
 */
bool torsh_operators_bind(const struct link_map *map, const struct torsh_elf_image *image,
			  const void *caller, const void *exported, void *definition, bool is_own);

#endif
