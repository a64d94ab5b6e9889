/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory that the import of an installed package keeps for ever, because modules are not freed
 * when a process ends. Decided by the stack: no frame of the user is between the allocation and
 * Python's import system. What a module of the user's own allocates while it is imported is the
 * user's.
 *
 * An import keeps its blocks once, and only a few. So these are leaks: memory of an import that
 * ran more than once, or that is allocated in several steps, or by a Python line that runs again
 * and again. Popular packages keep at most 55 blocks or 1 MiB per line; a package that runs its
 * program while it is imported keeps more, or allocates over most of the process's time.
 */
#ifndef TORSH_MEMORY_LEAKS_KEPT_IMPORTS_H
#define TORSH_MEMORY_LEAKS_KEPT_IMPORTS_H

#include "tools/base/containers/intern.h"
#include "tools/frames/address_kinds.h"
#include "tools/frames/stack_path.h"
#include "tools/memory/allocation_sites.h"
#include "tools/memory/leaks/import_runs.h"
#include "tools/memory/site_reader.h"

#define IMPORT_NAME_BYTES 64

struct kept_import {
	char package[IMPORT_NAME_BYTES]; /* as imported by the program: "torch" */
	uint64_t blocks, bytes; /* that no suppression rule matched */
	uint64_t suppressed_blocks, suppressed_bytes; /* that a built-in rule matched */
};

struct kept_imports {
	struct kept_import *items;
	size_t n, n_room;
	uint64_t blocks, bytes, suppressed_bytes; /* of all */
};

/* The import that a stack ends in. */
struct kept_import_stack {
	uint32_t stack; /* of the import system's outermost frame; 0: none */
	uint32_t named; /* an address with the package's name; the number of all: none has it */
	uint32_t importer; /* likewise that of the package whose line imports; the user's: none */
	bool is_repeated; /* an import that it is in ran more than once */
};

/* Finds the imports of the stacks of one process. */
struct import_finder {
	struct address_kinds *kinds;
	const struct import_runs *runs;
	struct stack_path path;
	struct kept_import_stack *callers; /* by depth of the path */
};

/* Start. The caller ends it before what it was started with. */
void torsh_import_finder_start(struct import_finder *finder, struct address_kinds *kinds,
			       const struct import_runs *runs);

/* Free what is cached. */
void torsh_import_finder_end(struct import_finder *finder);

/*
 * Returns the import that a stack belongs to: none where it belongs to none of an installed
 * package, or to one that ran more than once.
 */
struct kept_import_stack torsh_kept_import_of(struct import_finder *finder, uint32_t stack);

/*
 * Returns for each of the sites of a process the package of the import that keeps it, else NULL.
 * The caller frees the list; names owns its texts.
 */
const char **torsh_kept_imports_find(struct address_kinds *kinds, const struct import_runs *runs,
				     const struct site_reader *sites, struct intern *names);

/*
 * Count a site for its package. is_suppressed: a suppression rule matched it, and has counted it.
 */
void torsh_kept_imports_add(struct kept_imports *imports, const struct allocation_site *site,
			    const char *package, bool is_suppressed);

/* Sort the imports, most bytes first. */
void torsh_kept_imports_sort(struct kept_imports *imports);

#endif
