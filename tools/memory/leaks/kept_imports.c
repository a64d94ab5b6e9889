/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/kept_imports.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/die.h"
#include "tools/memory/leaks/import_growth.h"

void torsh_import_finder_start(struct import_finder *finder, struct address_kinds *kinds,
			       const struct import_runs *runs)
{
	*finder = (struct import_finder){
		.kinds = kinds,
		.runs = runs,
		.callers = torsh_need_items(NULL, 0, STACK_PATH_ROOM, sizeof(*finder->callers)),
	};
	finder->callers[0].named = kinds->process->tables->n_addresses;
	finder->callers[0].importer = finder->callers[0].named;
	torsh_stack_path_start(&finder->path, kinds->process);
}

void torsh_import_finder_end(struct import_finder *finder)
{
	torsh_stack_path_end(&finder->path);
	free(finder->callers);
	*finder = (struct import_finder){0};
}

/* Returns the import of a stack from that of its caller. */
static struct kept_import_stack next_import(struct import_finder *finder,
					    struct kept_import_stack import, uint32_t stack)
{
	struct address_kinds *kinds = finder->kinds;
	uint32_t none = kinds->process->tables->n_addresses;
	uint32_t address = kinds->process->tables->stacks[stack].address;
	enum frame_kind kind = torsh_address_kind(kinds, address);

	/* What a user's frame calls is the user's, whoever imports the user's module. */
	if (kind == FRAME_OWN)
		return (struct kept_import_stack){.named = none, .importer = none};
	if (!import.stack && (kind == FRAME_PACKAGE || kind == FRAME_STANDARD) &&
	    torsh_address_has_package(kinds, address))
		import.importer = address;
	if (torsh_address_is_import(kinds, address)) {
		import.is_repeated = import.is_repeated || finder->runs->is_repeated[stack];
		if (!import.stack)
			import.stack = stack;
	}
	/* The outermost frame inside of the import that has a package names it. */
	if (import.stack && import.named == none && torsh_address_has_package(kinds, address))
		import.named = address;
	return import;
}

struct kept_import_stack torsh_kept_import_of(struct import_finder *finder, uint32_t stack)
{
	struct stack_path *path = &finder->path;
	const struct kept_import_stack *import;

	for (size_t i = torsh_stack_path_take(path, stack); i <= path->depth; i++)
		finder->callers[i] = next_import(finder, finder->callers[i - 1], path->stacks[i]);
	import = &finder->callers[path->depth];
	return import->is_repeated ? finder->callers[0] : *import;
}

/* What the sites of one import share. */
struct import_facts {
	uint32_t named; /* address with the package's name, from the first site that has one */
	uint32_t first_step, last_step;
};

/* The facts by the stack of the import system. */
struct imports {
	struct address_kinds *kinds;
	struct key_index numbers; /* of a stack: 1 + its place in items */
	struct import_facts *items;
	size_t n, n_room;
	const char **names; /* by address; NULL: not looked up */
};

static struct import_facts *facts_of(struct imports *imports, uint32_t stack)
{
	struct key_slot *slot = torsh_key_index_find(&imports->numbers, stack);

	if (!slot->key) {
		imports->items = torsh_array_reserve(imports->items, imports->n, &imports->n_room,
						     sizeof(*imports->items));
		imports->items[imports->n].named = imports->kinds->process->tables->n_addresses;
		torsh_key_index_fill(&imports->numbers, slot, stack, (uint32_t)imports->n++);
		slot = torsh_key_index_find(&imports->numbers, stack);
	}
	return &imports->items[slot->number];
}

static void add_facts(struct imports *imports, const struct kept_import_stack *found,
		      const struct site_reader *sites, size_t i)
{
	struct import_facts *facts = facts_of(imports, found->stack);
	struct allocation_site site;

	if (torsh_address_has_package(imports->kinds, found->named) &&
	    facts->named == imports->kinds->process->tables->n_addresses)
		facts->named = found->named;
	if (!torsh_site_reader_has_steps(sites, i))
		return;
	site = torsh_site_reader_at(sites, i);
	if (site.first_step && (!facts->first_step || site.first_step < facts->first_step))
		facts->first_step = site.first_step;
	if (site.last_step > facts->last_step)
		facts->last_step = site.last_step;
}

/* The package of a site, or NULL. */
static const char *package_of(struct imports *imports, const struct kept_import_stack *found,
			      struct intern *names)
{
	const struct import_facts *facts = facts_of(imports, found->stack);
	char package[IMPORT_NAME_BYTES];
	uint32_t none = imports->kinds->process->tables->n_addresses, named = facts->named;

	/* Only the import system keeps something of it: a lock, an entry of the parent's. */
	if (named == none)
		named = found->importer;
	if (named == none || (facts->first_step && facts->first_step != facts->last_step))
		return NULL;
	/* The code of a package is read before a frame of the package exists. */
	if (torsh_address_has_package(imports->kinds, found->named))
		named = found->named;
	if (!imports->names[named]) {
		torsh_address_package(imports->kinds->process, named, package, sizeof(package));
		imports->names[named] = torsh_intern(names, package);
	}
	return imports->names[named];
}

const char **torsh_kept_imports_find(struct address_kinds *kinds, const struct import_runs *runs,
				     const struct site_reader *sites, struct intern *names)
{
	size_t n = sites->n;
	struct kept_import_stack *found = torsh_need_items(NULL, 0, n, sizeof(*found));
	const char **packages = torsh_need_items(NULL, 0, n, sizeof(*packages));
	struct imports imports = {
		.kinds = kinds,
		.names = torsh_need_items(NULL, 0, kinds->process->tables->n_addresses + 1,
					  sizeof(*imports.names)),
	};
	struct import_finder finder;

	torsh_import_finder_start(&finder, kinds, runs);
	for (size_t i = 0; i < n; i++)
		found[i] = torsh_kept_import_of(&finder, torsh_site_reader_stack(sites, i));
	torsh_import_finder_end(&finder);
	torsh_import_growth_drop(found, kinds, sites);
	torsh_key_index_create(&imports.numbers);
	for (size_t i = 0; i < n; i++)
		if (found[i].stack)
			add_facts(&imports, &found[i], sites, i);
	for (size_t i = 0; i < n; i++)
		packages[i] = found[i].stack ? package_of(&imports, &found[i], names) : NULL;
	torsh_key_index_destroy(&imports.numbers);
	free(imports.items);
	free(imports.names);
	free(found);
	return packages;
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
