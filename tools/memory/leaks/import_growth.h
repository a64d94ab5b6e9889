/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which memory below the import of a package grows: much of one stack, from a line of Python that
 * runs again and again. See tools/memory/leaks/kept_imports.h.
 */
#ifndef TORSH_MEMORY_LEAKS_IMPORT_GROWTH_H
#define TORSH_MEMORY_LEAKS_IMPORT_GROWTH_H

#include "tools/memory/leaks/kept_imports.h"

/* So many blocks grow if they are allocated over more than half of the lifetime. */
#define STEADY_BLOCKS 16

/* Returns the time between the first and the last allocation of the sites of a process, in ns. */
uint64_t torsh_import_lifetime(const struct site_reader *sites);

/*
 * Set found[i].stack to 0 for each of the sites of a process that grows: no import keeps it. found:
 * the import that each site ends in.
 */
void torsh_import_growth_drop(struct kept_import_stack *found, struct address_kinds *kinds,
			      const struct site_reader *sites);

#endif
