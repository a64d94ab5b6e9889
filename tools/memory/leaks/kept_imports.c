/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/kept_imports.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

bool torsh_is_import(const struct recorded_process *process, uint32_t address)
{
	const struct recorded_function *function = torsh_recording_function(process, address);

	return function && function->file && function->name &&
	       !strcmp(function->file, "<frozen importlib._bootstrap>") &&
	       !strcmp(function->name, "_find_and_load");
}

uint32_t torsh_kept_import_of(struct address_kinds *kinds, uint32_t stack,
			      char package[IMPORT_NAME_BYTES])
{
	const struct recorded_process *process = kinds->process;
	uint32_t import = 0;
	/* The addresses with the package's name: so far, and as of the import. */
	uint32_t last = process->n_addresses, named = process->n_addresses;

	for (; stack && stack < process->n_stacks; stack = process->stacks[stack].parent) {
		uint32_t address = process->stacks[stack].address;

		if (torsh_address_kind(kinds, address) == FRAME_OWN)
			break;
		if (torsh_address_has_package(kinds, address))
			last = address;
		if (!torsh_is_import(process, address))
			continue;
		import = stack;
		named = last;
	}
	torsh_address_package(process, named, package, IMPORT_NAME_BYTES);
	return import;
}

/* What the imports of a process have in common, by the stack of the import system. */
struct import_facts {
	const char *package; /* of the first site that has a name */
	uint32_t first_step, last_step;
};

struct found_import {
	uint32_t stack;
	char package[IMPORT_NAME_BYTES];
};

static void add_facts(struct import_facts *facts, const struct found_import *found,
		      const struct allocation_site *site)
{
	if (*found->package && !facts->package)
		facts->package = found->package;
	if (site->first_step && (!facts->first_step || site->first_step < facts->first_step))
		facts->first_step = site->first_step;
	if (site->last_step > facts->last_step)
		facts->last_step = site->last_step;
}

char **torsh_kept_imports_find(const struct recorded_process *process, struct symbols *symbols,
			       const struct allocation_site *sites, size_t n)
{
	struct found_import *found = torsh_need_items(NULL, 0, n, sizeof(*found));
	struct import_facts *facts = torsh_need_items(NULL, 0, process->n_stacks, sizeof(*facts));
	char **packages = torsh_need_items(NULL, 0, n, sizeof(*packages));
	struct address_kinds kinds;

	torsh_address_kinds_start(&kinds, process, symbols);
	for (size_t i = 0; i < n; i++) {
		found[i].stack = torsh_kept_import_of(&kinds, sites[i].stack, found[i].package);
		add_facts(&facts[found[i].stack], &found[i], &sites[i]);
	}
	for (size_t i = 0; i < n; i++) {
		const struct import_facts *of = &facts[found[i].stack];

		/* The code of a package itself is read before a frame of the package is there. */
		if (found[i].stack && of->package &&
		    (!of->first_step || of->first_step == of->last_step))
			packages[i] = torsh_need_text("%s", *found[i].package ? found[i].package
									      : of->package);
	}
	torsh_address_kinds_end(&kinds);
	free(found);
	free(facts);
	return packages;
}

void torsh_kept_imports_free_packages(char **packages, size_t n)
{
	for (size_t i = 0; packages && i < n; i++)
		free(packages[i]);
	free(packages);
}

void torsh_kept_imports_add(struct kept_imports *imports, const struct allocation_site *site,
			    const char *package, bool is_suppressed)
{
	struct kept_import *import = NULL;

	if (!site->blocks)
		return;
	for (size_t i = 0; i < imports->n && !import; i++)
		if (!strcmp(imports->items[i].package, package))
			import = &imports->items[i];
	if (!import) {
		imports->items = torsh_array_reserve(imports->items, imports->n, &imports->n_room,
						     sizeof(*import));
		import = &imports->items[imports->n++];
		*import = (struct kept_import){0};
		strncpy(import->package, package, sizeof(import->package) - 1);
	}
	if (is_suppressed) {
		import->suppressed_blocks += site->blocks;
		import->suppressed_bytes += site->bytes;
		imports->suppressed_bytes += site->bytes;
		return;
	}
	import->blocks += site->blocks;
	import->bytes += site->bytes;
	imports->blocks += site->blocks;
	imports->bytes += site->bytes;
}

static int compare_imports(const void *a, const void *b)
{
	const struct kept_import *one = a, *other = b;
	uint64_t x = one->bytes + one->suppressed_bytes, y = other->bytes + other->suppressed_bytes;

	return x == y ? strcmp(one->package, other->package) : x < y ? 1 : -1;
}

void torsh_kept_imports_sort(struct kept_imports *imports)
{
	if (imports->n)
		qsort(imports->items, imports->n, sizeof(*imports->items), compare_imports);
}
