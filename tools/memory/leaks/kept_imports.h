/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the import of an installed package leaves for ever: modules are not taken apart when a
 * process ends. Decided by the stack: none of the user's frames stands between the allocation and
 * Python's import system. What the module of a user's own does when it is imported is the user's.
 *
 * An import keeps its blocks once, and not many. So these are leaks: what an import leaves that ran
 * more than once, in several steps, or from a line of Python that runs again and again. The popular
 * packages keep at most 55 blocks or 1 MiB for one line; a package that runs its program while it
 * is imported keeps more, or keeps it over most of the time of the process.
 */
#ifndef TORSH_MEMORY_LEAKS_KEPT_IMPORTS_H
#define TORSH_MEMORY_LEAKS_KEPT_IMPORTS_H

#include "tools/frames/address_kinds.h"
#include "tools/memory/allocation_sites.h"
#include "tools/memory/leaks/import_runs.h"

#define IMPORT_NAME_BYTES 64

struct kept_import {
	char package[IMPORT_NAME_BYTES]; /* as the program imported it: "torch" */
	uint64_t blocks, bytes; /* that no suppression rule took */
	uint64_t suppressed_blocks, suppressed_bytes; /* that a built-in rule took */
};

struct kept_imports {
	struct kept_import *items;
	size_t n, n_room;
	uint64_t blocks, bytes, suppressed_bytes; /* of all */
};

/*
 * The import that a stack ends in, as the stack of the import system's outermost frame, and the
 * package's name; 0: it ends in none of an installed package, or in one that ran more than once.
 */
uint32_t torsh_kept_import_of(struct address_kinds *kinds, const struct import_runs *runs,
			      uint32_t stack, char package[IMPORT_NAME_BYTES]);

/*
 * For each of n sites of one process the package of the import that keeps it, else NULL. The caller
 * frees the list with torsh_kept_imports_free_packages.
 */
char **torsh_kept_imports_find(struct address_kinds *kinds, const struct import_runs *runs,
			       const struct allocation_site *sites, size_t n);

/* Free such a list, which may be NULL. */
void torsh_kept_imports_free_packages(char **packages, size_t n);

/* Count a site for its package. is_suppressed: a suppression rule took it, and has counted it. */
void torsh_kept_imports_add(struct kept_imports *imports, const struct allocation_site *site,
			    const char *package, bool is_suppressed);

/* Sort the imports, most bytes first. */
void torsh_kept_imports_sort(struct kept_imports *imports);

#endif
