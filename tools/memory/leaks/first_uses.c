/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/first_uses.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/frames/stack_path.h"
#include "tools/memory/leaks/import_growth.h"
#include "tools/memory/leaks/import_runs.h"
#include "tools/memory/leaks/kept_imports.h"
#include "tools/memory/leaks/rules/stack_bytes.h"

#define REPEATED_CALLS 8
#define MANY_BLOCKS 1024 /* without a line of Python that could have run again */

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* How a stack came to be a library's, by its frames from the user's innermost one on. */
struct use {
	bool is_none; /* a frame of an import, or one that is not known, is among them */
	bool is_decided; /* is_of_library is: by the outermost frame of either side */
	bool is_of_library;
	bool is_called_by_c; /* the user's innermost frame is not Python's */
	uint32_t own; /* the address of the user's innermost frame + 1; 0: it has none */
	uint32_t named; /* the outermost address of the library's that has a package */
	uint32_t line; /* the stack of the innermost line of Python, 0: none */
	uint64_t key, line_key; /* of all frames, and of those up to the line */
};

static uint64_t mix(uint64_t key, uint32_t address)
{
	key = (key ^ address) * UINT64_C(0x100000001b3);
	return key ^ key >> 29;
}

static bool is_library(enum frame_kind kind)
{
	return kind == FRAME_PACKAGE || kind == FRAME_STANDARD || kind == FRAME_LIBRARY;
}

/* The uses of stacks in the order of their numbers. */
struct use_finder {
	struct address_kinds *kinds;
	struct stack_path path;
	struct use *callers; /* by depth */
};

static void start_finder(struct use_finder *finder, struct address_kinds *kinds)
{
	*finder = (struct use_finder){
		.kinds = kinds,
		.callers = torsh_need_items(NULL, 0, STACK_PATH_ROOM, sizeof(*finder->callers)),
	};
	finder->callers[0] =
		(struct use){.named = kinds->process->tables->n_addresses, .key = HASH_START};
	torsh_stack_path_start(&finder->path, kinds->process);
}

static void end_finder(struct use_finder *finder)
{
	torsh_stack_path_end(&finder->path);
	free(finder->callers);
}

/* Note which side a frame that is not the user's is on. */
static void take_side(struct use *use, struct address_kinds *kinds, enum frame_kind kind,
		      uint32_t address)
{
	bool calls_c = torsh_address_calls_c(kinds, address);

	if (!use->is_decided && (calls_c || is_library(kind))) {
		use->is_decided = true;
		use->is_of_library = !calls_c;
	}
	if (use->named == kinds->process->tables->n_addresses && is_library(kind) &&
	    torsh_address_has_package(kinds, address))
		use->named = address;
}

/* Returns the use of a stack from that of its caller. */
static struct use next_use(struct address_kinds *kinds, struct use use, uint32_t stack)
{
	const struct recorded_process *process = kinds->process;
	uint32_t address = process->tables->stacks[stack].address;
	enum frame_kind kind = torsh_address_kind(kinds, address);
	bool is_python = kind != FRAME_CUT && torsh_is_python_line(process, stack);

	if (kind == FRAME_OWN)
		use = (struct use){.named = process->tables->n_addresses,
				   .key = HASH_START,
				   .own = address + 1,
				   .is_called_by_c = !is_python};
	else if (kind == FRAME_CUT || torsh_address_is_import(kinds, address))
		use.is_none = true;
	else
		take_side(&use, kinds, kind, address);
	/* Calls that CPython has specialised, and those that it has not, have one key. */
	if (kind != FRAME_INTERPRETER)
		use.key = mix(use.key, address);
	if (is_python) {
		use.line = stack;
		use.line_key = use.key;
	}
	return use;
}

static struct use use_of(struct use_finder *finder, uint32_t stack)
{
	struct stack_path *path = &finder->path;
	struct use use;

	for (size_t i = torsh_stack_path_take(path, stack); i <= path->depth; i++)
		finder->callers[i] =
			next_use(finder->kinds, finder->callers[i - 1], path->stacks[i]);
	use = finder->callers[path->depth];
	if (use.is_none)
		return (struct use){0};
	use.is_of_library = use.is_of_library && !use.is_called_by_c;
	return use;
}

/* ---- how often a line of Python ran ---------------------------------------------------------- */

/* What one stack allocated below a line. */
struct line_count {
	uint64_t line_key, allocs;
};

struct line_counts {
	struct line_count *items;
	size_t n;
};

static int compare_counts(const void *a, const void *b)
{
	const struct line_count *one = a, *other = b;

	if (one->line_key != other->line_key)
		return one->line_key < other->line_key ? -1 : 1;
	return (one->allocs > other->allocs) - (one->allocs < other->allocs);
}

/* The keys of the lines that are to be counted, in order. */
struct wanted_lines {
	uint64_t *keys;
	size_t n;
};

static int compare_wanted(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static bool is_wanted(const struct wanted_lines *wanted, uint64_t key)
{
	return bsearch(&key, wanted->keys, wanted->n, sizeof(key), compare_wanted);
}

static struct line_counts count_lines(struct address_kinds *kinds,
				      const struct wanted_lines *wanted)
{
	const struct recorded_process *process = kinds->process;
	struct line_counts counts = {0};
	struct use_finder finder;
	size_t room = 0;

	if (!wanted->n)
		return counts;
	start_finder(&finder, kinds);
	for (size_t i = 0; i < process->totals.n; i++) {
		struct allocation_count total = torsh_totals_count(&process->totals, i);
		struct use use = use_of(&finder, total.stack);

		if (!use.line || !total.allocs || !is_wanted(wanted, use.line_key))
			continue;
		counts.items =
			torsh_array_reserve(counts.items, counts.n, &room, sizeof(*counts.items));
		counts.items[counts.n++] = (struct line_count){use.line_key, total.allocs};
	}
	end_finder(&finder);
	if (counts.n)
		qsort(counts.items, counts.n, sizeof(*counts.items), compare_counts);
	return counts;
}

/*
 * How often a line ran, at most: of all that it allocates some is allocated once a call.
 */
static uint64_t calls_of(const struct line_counts *counts, uint64_t line_key)
{
	size_t first = 0, end = counts->n;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (counts->items[middle].line_key < line_key)
			first = middle + 1;
		else
			end = middle;
	}
	for (end = first; end < counts->n && counts->items[end].line_key == line_key;)
		end++;
	return end > first ? counts->items[first + torsh_call_rank(end - first)].allocs : 0;
}

/* ---- which sites are repeated ---------------------------------------------------------------- */

struct used_site {
	uint64_t key, line_key; /* as in struct use; line_key: 0 if there is no line */
	uint32_t own, named;
	uint32_t site; /* its number */
};

struct used_sites {
	const struct site_reader *sites;
	struct used_site *items;
	size_t n, room;
};

static void add_used(struct used_sites *used, const struct use *use, size_t site)
{
	used->items = torsh_array_reserve(used->items, used->n, &used->room, sizeof(*used->items));
	used->items[used->n++] = (struct used_site){
		.key = use->key,
		.line_key = use->line ? use->line_key : 0,
		.own = use->own,
		.named = use->named,
		.site = (uint32_t)site,
	};
}

static int compare_keys(const void *a, const void *b)
{
	const struct used_site *one = a, *other = b;

	return (one->key > other->key) - (one->key < other->key);
}

static int compare_own(const void *a, const void *b)
{
	const struct used_site *one = a, *other = b;

	return (one->own > other->own) - (one->own < other->own);
}

/* Returns the end of the sites that have the first one's key. */
static size_t end_of_key(const struct used_sites *used, size_t first)
{
	size_t end = first;

	while (end < used->n && used->items[end].key == used->items[first].key)
		end++;
	return end;
}

static uint64_t count_blocks(const struct used_sites *used, size_t first, size_t end)
{
	uint64_t blocks = 0;

	for (size_t i = first; i < end; i++)
		blocks += torsh_site_reader_few_blocks(used->sites, used->items[i].site);
	return blocks;
}

/* Returns the lines whose calls are counted; the caller frees the keys. */
static struct wanted_lines find_wanted(const struct used_sites *used)
{
	struct wanted_lines wanted = {0};
	size_t room = 0;

	for (size_t first = 0, end; first < used->n; first = end) {
		end = end_of_key(used, first);
		if (!used->items[first].line_key || count_blocks(used, first, end) < REPEATED_CALLS)
			continue;
		wanted.keys =
			torsh_array_reserve(wanted.keys, wanted.n, &room, sizeof(*wanted.keys));
		wanted.keys[wanted.n++] = used->items[first].line_key;
	}
	if (wanted.n)
		qsort(wanted.keys, wanted.n, sizeof(*wanted.keys), compare_wanted);
	return wanted;
}

/* Returns true if sites of one key, from first to end, hold what was kept again and again. */
static bool is_repeated(const struct used_sites *used, size_t first, size_t end,
			const struct line_counts *counts, uint64_t lifetime_ns)
{
	uint64_t blocks = 0, first_ns = UINT64_MAX, last_ns = 0;
	uint32_t first_step = UINT32_MAX, last_step = 0;

	if (count_blocks(used, first, end) < 2)
		return false;
	for (size_t i = first; i < end; i++) {
		struct allocation_site site =
			torsh_site_reader_at(used->sites, used->items[i].site);

		blocks += site.blocks;
		first_ns = site.first_ns < first_ns ? site.first_ns : first_ns;
		last_ns = site.last_ns > last_ns ? site.last_ns : last_ns;
		first_step = site.first_step < first_step ? site.first_step : first_step;
		last_step = site.last_step > last_step ? site.last_step : last_step;
	}
	if (first_step != last_step)
		return true;
	if (blocks >= STEADY_BLOCKS && last_ns - first_ns > lifetime_ns / 2)
		return true;
	if (!used->items[first].line_key)
		return blocks > MANY_BLOCKS;
	return blocks >= REPEATED_CALLS &&
	       calls_of(counts, used->items[first].line_key) >= REPEATED_CALLS;
}

/* Leave out what is repeated. */
static void drop_repeated(struct address_kinds *kinds, struct used_sites *used)
{
	uint64_t lifetime_ns = torsh_import_lifetime(used->sites);
	struct wanted_lines wanted;
	struct line_counts counts;
	size_t n_left = 0;

	qsort(used->items, used->n, sizeof(*used->items), compare_keys);
	wanted = find_wanted(used);
	counts = count_lines(kinds, &wanted);
	for (size_t first = 0, end; first < used->n; first = end) {
		end = end_of_key(used, first);
		if (is_repeated(used, first, end, &counts, lifetime_ns))
			continue;
		memmove(used->items + n_left, used->items + first,
			(end - first) * sizeof(*used->items));
		n_left += end - first;
	}
	used->n = n_left;
	free(wanted.keys);
	free(counts.items);
}

static const char *package_of(const struct recorded_process *process, uint32_t named,
			      struct intern *names)
{
	char package[IMPORT_NAME_BYTES];

	return torsh_intern(names, torsh_address_package(process, named, package, sizeof(package))
					   ? package
					   : "libraries");
}

static void name_packages(const struct recorded_process *process, struct used_sites *used,
			  const char **packages, struct intern *names)
{
	qsort(used->items, used->n, sizeof(*used->items), compare_own);
	for (size_t first = 0, end; first < used->n; first = end) {
		const struct used_site *items = used->items;
		uint64_t bytes = 0;

		for (end = first; end < used->n && items[end].own == items[first].own; end++)
			bytes += torsh_site_reader_at(used->sites, items[end].site).bytes;
		if (bytes > LEAKS_KEPT_BYTES)
			continue;
		for (size_t i = first; i < end; i++)
			packages[items[i].site] = package_of(process, items[i].named, names);
	}
}

const char **torsh_first_uses_find(struct address_kinds *kinds, const struct site_reader *sites,
				   const bool *is_decided, struct intern *names)
{
	const char **packages = torsh_need_items(NULL, 0, sites->n, sizeof(*packages));
	struct used_sites used = {.sites = sites};
	struct use_finder finder;

	start_finder(&finder, kinds);
	for (size_t i = 0; i < sites->n; i++) {
		struct use use;

		if (is_decided[i])
			continue;
		use = use_of(&finder, torsh_site_reader_stack(sites, i));
		if (use.is_of_library)
			add_used(&used, &use, i);
	}
	end_finder(&finder);
	if (used.n) {
		drop_repeated(kinds, &used);
		name_packages(kinds->process, &used, packages, names);
	}
	free(used.items);
	return packages;
}
