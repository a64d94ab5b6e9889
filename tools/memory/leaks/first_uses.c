/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/first_uses.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/die.h"
#include "tools/memory/leaks/import_growth.h"
#include "tools/memory/leaks/import_runs.h"
#include "tools/memory/leaks/kept_imports.h"
#include "tools/memory/leaks/rules/stack_bytes.h"

#define REPEATED_CALLS 8
#define MANY_BLOCKS 1024 /* without a line of Python that could have run again */

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* How a stack came to be a library's. */
struct use {
	bool is_of_library;
	uint32_t own; /* the address of the user's innermost frame + 1; 0: it has none */
	uint32_t named; /* the outermost address of the library's that has a package */
	uint32_t line; /* the stack of the innermost line of Python, 0: none */
	uint64_t key, line_key; /* of all frames, and of those from the line on, up to own */
};

static uint64_t mix(uint64_t key, uint32_t address)
{
	key = (key ^ address) * UINT64_C(0x100000001b3);
	return key ^ key >> 29;
}

/* Returns true for what calls functions of C for a line of Python. */
static bool is_foreign_call(const struct recorded_process *process, uint32_t address)
{
	static const char *const callers[] = {"_ctypes.", "libffi", "_cffi_backend."};
	const struct recorded_module *module = torsh_recording_module(process, address);
	const char *slash = module && module->path ? strrchr(module->path, '/') : NULL;

	for (size_t i = 0; slash && i < sizeof(callers) / sizeof(*callers); i++)
		if (!strncmp(slash + 1, callers[i], strlen(callers[i])))
			return true;
	return false;
}

static bool is_library(enum frame_kind kind)
{
	return kind == FRAME_PACKAGE || kind == FRAME_STANDARD || kind == FRAME_LIBRARY;
}

/* Key a frame; calls that CPython has specialised, and those that it has not, have one key. */
static void add_frame(struct use *use, enum frame_kind kind, uint32_t address)
{
	if (kind == FRAME_INTERPRETER)
		return;
	use->key = mix(use->key, address);
	if (use->line)
		use->line_key = mix(use->line_key, address);
}

static struct use use_of(struct address_kinds *kinds, uint32_t stack)
{
	const struct recorded_process *process = kinds->process;
	struct use use = {
		.named = process->tables->n_addresses, .key = HASH_START, .line_key = HASH_START};

	for (; stack && stack < process->tables->n_stacks;
	     stack = process->tables->stacks[stack].parent) {
		uint32_t address = process->tables->stacks[stack].address;
		enum frame_kind kind = torsh_address_kind(kinds, address);
		bool is_python = kind != FRAME_CUT &&
				 process->tables->addresses[address].flags == ADDRESS_PYTHON;

		if (kind == FRAME_CUT || torsh_address_is_import(kinds, address))
			return (struct use){0};
		if (is_python && !use.line)
			use.line = stack;
		add_frame(&use, kind, address);
		if (kind == FRAME_OWN) {
			use.own = address + 1;
			use.is_of_library = use.is_of_library && is_python;
			break;
		}
		if (!is_python && is_foreign_call(process, address))
			use.is_of_library = false;
		else if (is_library(kind))
			use.is_of_library = true;
		if (is_library(kind) && torsh_address_has_package(kinds, address))
			use.named = address;
	}
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

static struct line_counts count_lines(struct address_kinds *kinds)
{
	const struct recorded_process *process = kinds->process;
	struct line_counts counts = {
		.items = torsh_need_items(NULL, 0, process->totals.n, sizeof(*counts.items))};

	for (size_t i = 0; i < process->totals.n; i++) {
		struct recorded_total total = torsh_totals_at(&process->totals, i);
		struct use use = use_of(kinds, total.stack);

		if (use.line && total.allocs)
			counts.items[counts.n++] = (struct line_count){use.line_key, total.allocs};
	}
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
	const struct allocation_site *site;
	struct use use;
	size_t i; /* of the site */
};

static int compare_keys(const void *a, const void *b)
{
	const struct used_site *one = a, *other = b;

	return (one->use.key > other->use.key) - (one->use.key < other->use.key);
}

static int compare_own(const void *a, const void *b)
{
	const struct used_site *one = a, *other = b;

	return (one->use.own > other->use.own) - (one->use.own < other->use.own);
}

/* Returns true if sites of one key hold what was kept again and again. */
static bool is_repeated(const struct used_site *used, size_t n, const struct line_counts *counts,
			uint64_t lifetime_ns)
{
	uint64_t blocks = 0, first_ns = UINT64_MAX, last_ns = 0, calls;
	uint32_t first_step = UINT32_MAX, last_step = 0;

	for (size_t i = 0; i < n; i++) {
		const struct allocation_site *site = used[i].site;

		blocks += site->blocks;
		first_ns = site->first_ns < first_ns ? site->first_ns : first_ns;
		last_ns = site->last_ns > last_ns ? site->last_ns : last_ns;
		first_step = site->first_step < first_step ? site->first_step : first_step;
		last_step = site->last_step > last_step ? site->last_step : last_step;
	}
	if (blocks > 1 && first_step != last_step)
		return true;
	if (blocks >= STEADY_BLOCKS && last_ns - first_ns > lifetime_ns / 2)
		return true;
	if (!used->use.line)
		return blocks > MANY_BLOCKS;
	calls = blocks >= REPEATED_CALLS ? calls_of(counts, used->use.line_key) : 0;
	return calls >= REPEATED_CALLS;
}

/* Leave out what is repeated; returns how many are left. */
static size_t drop_repeated(struct address_kinds *kinds, struct used_site *used, size_t n,
			    uint64_t lifetime_ns)
{
	struct line_counts counts = count_lines(kinds);
	size_t n_left = 0;

	qsort(used, n, sizeof(*used), compare_keys);
	for (size_t first = 0, end; first < n; first = end) {
		for (end = first; end < n && used[end].use.key == used[first].use.key;)
			end++;
		if (is_repeated(used + first, end - first, &counts, lifetime_ns))
			continue;
		memmove(used + n_left, used + first, (end - first) * sizeof(*used));
		n_left += end - first;
	}
	free(counts.items);
	return n_left;
}

static char *package_of(const struct recorded_process *process, const struct use *use)
{
	char package[IMPORT_NAME_BYTES];

	return torsh_need_text("%s",
			       torsh_address_package(process, use->named, package, sizeof(package))
				       ? package
				       : "libraries");
}

static void name_packages(const struct recorded_process *process, struct used_site *used, size_t n,
			  char **packages)
{
	qsort(used, n, sizeof(*used), compare_own);
	for (size_t first = 0, end; first < n; first = end) {
		uint64_t bytes = 0;

		for (end = first; end < n && used[end].use.own == used[first].use.own; end++)
			bytes += used[end].site->bytes;
		if (bytes > LEAKS_KEPT_BYTES)
			continue;
		for (size_t i = first; i < end; i++)
			packages[used[i].i] = package_of(process, &used[i].use);
	}
}

char **torsh_first_uses_find(struct address_kinds *kinds, const struct allocation_site *sites,
			     const bool *is_decided, size_t n)
{
	struct used_site *used = torsh_need_items(NULL, 0, n, sizeof(*used));
	char **packages = torsh_need_items(NULL, 0, n, sizeof(*packages));
	size_t n_used = 0;

	for (size_t i = 0; i < n; i++) {
		struct use use;

		if (is_decided[i])
			continue;
		use = use_of(kinds, sites[i].stack);
		if (use.is_of_library)
			used[n_used++] = (struct used_site){&sites[i], use, i};
	}
	if (n_used) {
		const struct site_reader all = torsh_site_reader_of(sites, n);

		n_used = drop_repeated(kinds, used, n_used, torsh_import_lifetime(&all));
		name_packages(kinds->process, used, n_used, packages);
	}
	free(used);
	return packages;
}
