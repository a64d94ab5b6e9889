/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/kept_imports.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/* more blocks of one stack below a Python line are not kept on purpose, but grow */
#define GROWING_BLOCKS 128
#define GROWING_BYTES (UINT64_C(2) << 20)
#define STEADY_BLOCKS 16 /* likewise, if they are allocated over half of the process's time */
/* likewise for a Python line, whatever it keeps */
#define FEW_CALLS 8

uint32_t torsh_kept_import_of(struct address_kinds *kinds, const struct import_runs *runs,
			      uint32_t stack, char package[IMPORT_NAME_BYTES])
{
	const struct recorded_process *process = kinds->process;
	uint32_t import = 0;
	/* Addresses that have a package's name: the last one so far, and that of the import. */
	uint32_t last = process->n_addresses, named = process->n_addresses;

	for (; stack && stack < process->n_stacks; stack = process->stacks[stack].parent) {
		uint32_t address = process->stacks[stack].address;

		if (torsh_address_kind(kinds, address) == FRAME_OWN)
			break;
		if (torsh_address_has_package(kinds, address))
			last = address;
		if (!torsh_is_import(process, address))
			continue;
		if (runs->is_repeated[stack])
			return 0;
		import = stack;
		named = last;
	}
	torsh_address_package(process, named, package, IMPORT_NAME_BYTES);
	return import;
}

/*
 * Returns the key of the Python lines and the native frames inside of them, without the
 * interpreter's: a call has one key whether CPython has specialised it or not.
 */
static uint64_t key_of(struct address_kinds *kinds, uint32_t stack)
{
	const struct recorded_process *process = kinds->process;
	uint64_t key = UINT64_C(0xcbf29ce484222325);

	for (; stack && stack < process->n_stacks; stack = process->stacks[stack].parent) {
		uint32_t address = process->stacks[stack].address;

		if (torsh_address_kind(kinds, address) == FRAME_INTERPRETER)
			continue;
		key = (key ^ address) * UINT64_C(0x100000001b3);
		key ^= key >> 29;
	}
	return key;
}

/*
 * Returns the innermost Python line of a stack; 0: it has none, or it belongs to the import
 * system, which runs no loop.
 */
static uint32_t line_of(struct address_kinds *kinds, uint32_t stack)
{
	const struct recorded_process *process = kinds->process;
	uint32_t line = torsh_python_line_of(process, stack < process->n_stacks ? stack : 0);

	if (line && torsh_address_kind(kinds, process->stacks[line].address) == FRAME_IMPORT)
		return 0;
	return line;
}

static int compare_counts(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

/* Returns the line of each stack that allocated, by its total; the caller frees them. */
static uint32_t *find_lines(struct address_kinds *kinds)
{
	const struct recorded_process *process = kinds->process;
	const struct recorded_total *totals = process->totals.items;
	uint32_t *lines = torsh_need_items(NULL, 0, process->totals.n + 1, sizeof(*lines));

	for (size_t i = 0; i < process->totals.n; i++)
		lines[i] = line_of(kinds, totals[i].stack);
	return lines;
}

/*
 * Returns an upper bound of how often a Python line ran: each call allocates something once.
 */
static uint64_t calls_of(struct address_kinds *kinds, const uint32_t *lines, uint32_t line)
{
	const struct recorded_process *process = kinds->process;
	const struct recorded_total *totals = process->totals.items;
	uint64_t key = key_of(kinds, line), *allocs = NULL, calls;
	size_t n = 0, n_room = 0;

	for (size_t i = 0; i < process->totals.n; i++) {
		uint32_t other = lines[i];

		if (!other || process->stacks[other].address != process->stacks[line].address ||
		    key_of(kinds, other) != key)
			continue;
		allocs = torsh_array_reserve(allocs, n, &n_room, sizeof(*allocs));
		allocs[n++] = totals[i].allocs;
	}
	if (!n)
		return 0;
	qsort(allocs, n, sizeof(*allocs), compare_counts);
	calls = allocs[torsh_call_rank(n)];
	free(allocs);
	return calls;
}

struct keyed_site {
	uint64_t key;
	const struct allocation_site *site;
	uint32_t *import; /* set to 0 if the site's memory grows */
};

static int compare_keys(const void *a, const void *b)
{
	const struct keyed_site *one = a, *other = b;

	return (one->key > other->key) - (one->key < other->key);
}

/*
 * Returns whether the sites of one key grow: many blocks, much in some of them, or some all the
 * time.
 */
static bool is_growing(const struct keyed_site *sites, size_t n, uint64_t lifetime_ns)
{
	uint64_t blocks = 0, bytes = 0, first_ns = UINT64_MAX, last_ns = 0;

	for (size_t i = 0; i < n; i++) {
		const struct allocation_site *site = sites[i].site;

		blocks += site->blocks;
		bytes += site->bytes;
		first_ns = site->first_ns < first_ns ? site->first_ns : first_ns;
		last_ns = site->last_ns > last_ns ? site->last_ns : last_ns;
	}
	return blocks > GROWING_BLOCKS || (blocks >= FEW_CALLS && bytes > GROWING_BYTES) ||
	       (blocks >= STEADY_BLOCKS && last_ns - first_ns > lifetime_ns / 2);
}

static uint64_t lifetime_of(const struct allocation_site *sites, size_t n)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	for (size_t i = 0; i < n; i++) {
		first_ns = sites[i].first_ns < first_ns ? sites[i].first_ns : first_ns;
		last_ns = sites[i].last_ns > last_ns ? sites[i].last_ns : last_ns;
	}
	return n ? last_ns - first_ns : 0;
}

/* What the sites of one import share, by the stack of the import system. */
struct import_facts {
	const char *package; /* from the first site that has a name */
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

/* An import below which memory grows is not the reason that it is kept. */
static void drop_growing(struct found_import *found, struct address_kinds *kinds,
			 const struct allocation_site *sites, size_t n)
{
	struct keyed_site *keyed = torsh_need_items(NULL, 0, n + 1, sizeof(*keyed));
	uint64_t lifetime_ns = lifetime_of(sites, n);
	uint32_t *lines = find_lines(kinds);
	size_t n_keyed = 0;

	for (size_t i = 0; i < n; i++) {
		if (found[i].stack && line_of(kinds, sites[i].stack))
			keyed[n_keyed++] = (struct keyed_site){key_of(kinds, sites[i].stack),
							       &sites[i], &found[i].stack};
	}
	qsort(keyed, n_keyed, sizeof(*keyed), compare_keys);
	for (size_t first = 0, end; first < n_keyed; first = end) {
		for (end = first; end < n_keyed && keyed[end].key == keyed[first].key;)
			end++;
		if (!is_growing(keyed + first, end - first, lifetime_ns) ||
		    calls_of(kinds, lines, line_of(kinds, keyed[first].site->stack)) < FEW_CALLS)
			continue;
		for (size_t i = first; i < end; i++)
			*keyed[i].import = 0;
	}
	free(keyed);
	free(lines);
}

char **torsh_kept_imports_find(struct address_kinds *kinds, const struct import_runs *runs,
			       const struct allocation_site *sites, size_t n)
{
	struct found_import *found = torsh_need_items(NULL, 0, n, sizeof(*found));
	struct import_facts *facts =
		torsh_need_items(NULL, 0, kinds->process->n_stacks, sizeof(*facts));
	char **packages = torsh_need_items(NULL, 0, n, sizeof(*packages));

	for (size_t i = 0; i < n; i++)
		found[i].stack =
			torsh_kept_import_of(kinds, runs, sites[i].stack, found[i].package);
	drop_growing(found, kinds, sites, n);
	for (size_t i = 0; i < n; i++)
		add_facts(&facts[found[i].stack], &found[i], &sites[i]);
	for (size_t i = 0; i < n; i++) {
		const struct import_facts *of = &facts[found[i].stack];

		/* The code of a package is read before a frame of the package exists. */
		if (found[i].stack && of->package &&
		    (!of->first_step || of->first_step == of->last_step))
			packages[i] = torsh_need_text("%s", *found[i].package ? found[i].package
									      : of->package);
	}
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
