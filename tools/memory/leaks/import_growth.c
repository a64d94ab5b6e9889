/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/import_growth.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/* more blocks of one stack below a Python line are not kept on purpose, but grow */
#define GROWING_BLOCKS 128
#define GROWING_BYTES (UINT64_C(2) << 20)
/* likewise for a Python line, whatever it keeps */
#define FEW_CALLS 8

/*
 * Returns the innermost Python line of a stack; 0: it has none, or it belongs to the import
 * system, which runs no loop.
 */
static uint32_t line_of(struct address_kinds *kinds, uint32_t stack)
{
	const struct recorded_process *process = kinds->process;
	uint32_t line = torsh_innermost_line(process, stack);

	if (line &&
	    torsh_address_kind(kinds, process->tables->stacks[line].address) == FRAME_IMPORT)
		return 0;
	return line;
}

struct keyed_site {
	uint64_t key;
	uint32_t site; /* number */
	uint32_t n_growing; /* of the first of a key: sites that grow together; 0: they don't */
};

/* How often one stack of a line allocated. */
struct line_count {
	uint64_t key; /* of the line's stack */
	uint64_t allocs;
	uint32_t address; /* the line */
};

struct growth {
	struct address_kinds *kinds;
	const struct site_reader *sites;
	struct stack_path path;
	uint64_t *keys; /* by depth of the path: see key_of */
	struct keyed_site *keyed; /* sorted by key */
	size_t n_keyed;
	struct line_count *counts; /* of lines below which something grows; sorted */
	size_t n_counts, counts_room;
};

/* Returns the key of a stack from its caller's. */
static uint64_t next_key(struct growth *growth, uint64_t key, uint32_t stack)
{
	uint32_t address = growth->kinds->process->tables->stacks[stack].address;

	if (torsh_address_kind(growth->kinds, address) == FRAME_INTERPRETER)
		return key;
	key = (key ^ address) * UINT64_C(0x100000001b3);
	return key ^ key >> 29;
}

/*
 * Returns the key of a stack: of its Python lines and the native frames inside of them, without the
 * interpreter's: a call has one key whether CPython has specialised it or not.
 */
static uint64_t key_of(struct growth *growth, uint32_t stack)
{
	struct stack_path *path = &growth->path;

	for (size_t i = torsh_stack_path_take(path, stack); i <= path->depth; i++)
		growth->keys[i] = next_key(growth, growth->keys[i - 1], path->stacks[i]);
	return growth->keys[path->depth];
}

static int compare_keys(const void *a, const void *b)
{
	const struct keyed_site *one = a, *other = b;

	return (one->key > other->key) - (one->key < other->key);
}

static int compare_lines(const struct line_count *one, const struct line_count *other)
{
	if (one->address != other->address)
		return one->address < other->address ? -1 : 1;
	return (one->key > other->key) - (one->key < other->key);
}

static int compare_counts(const void *a, const void *b)
{
	const struct line_count *one = a, *other = b;
	int order = compare_lines(one, other);

	return order ? order : (one->allocs > other->allocs) - (one->allocs < other->allocs);
}

/*
 * Returns whether the sites of one key grow: many blocks, much in some of them, or some all the
 * time.
 */
static bool is_growing(const struct site_reader *sites, const struct keyed_site *keyed, size_t n,
		       uint64_t lifetime_ns)
{
	uint64_t blocks = 0, bytes = 0, first_ns = UINT64_MAX, last_ns = 0;

	/* Most are few. */
	for (size_t i = 0; i < n; i++)
		blocks += torsh_site_reader_few_blocks(sites, keyed[i].site);
	if (blocks < FEW_CALLS)
		return false;
	blocks = 0;
	for (size_t i = 0; i < n; i++) {
		struct allocation_site site = torsh_site_reader_at(sites, keyed[i].site);

		blocks += site.blocks;
		bytes += site.bytes;
		first_ns = site.first_ns < first_ns ? site.first_ns : first_ns;
		last_ns = site.last_ns > last_ns ? site.last_ns : last_ns;
	}
	return blocks > GROWING_BLOCKS || (blocks >= FEW_CALLS && bytes > GROWING_BYTES) ||
	       (blocks >= STEADY_BLOCKS && last_ns - first_ns > lifetime_ns / 2);
}

uint64_t torsh_import_lifetime(const struct site_reader *sites)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	/* Rows of totals have no times. */
	for (size_t i = 0; sites->sites && i < sites->n; i++) {
		const struct allocation_site *site = &sites->sites[i];

		first_ns = site->first_ns < first_ns ? site->first_ns : first_ns;
		last_ns = site->last_ns > last_ns ? site->last_ns : last_ns;
	}
	return first_ns < last_ns ? last_ns - first_ns : 0;
}

/* Sort the sites that an import keeps by key, and find those that grow. */
static void find_growing(struct growth *growth, const struct kept_import_stack *found)
{
	const struct site_reader *sites = growth->sites;
	uint64_t lifetime_ns = torsh_import_lifetime(sites);

	for (size_t i = 0; i < sites->n; i++) {
		uint32_t stack = found[i].stack ? torsh_site_reader_stack(sites, i) : 0;

		if (stack && line_of(growth->kinds, stack))
			growth->keyed[growth->n_keyed++] = (struct keyed_site){
				.key = key_of(growth, stack), .site = (uint32_t)i};
	}
	qsort(growth->keyed, growth->n_keyed, sizeof(*growth->keyed), compare_keys);
	for (size_t first = 0, end; first < growth->n_keyed; first = end) {
		struct keyed_site *keyed = &growth->keyed[first];

		for (end = first; end < growth->n_keyed && growth->keyed[end].key == keyed->key;)
			end++;
		if (is_growing(sites, keyed, end - first, lifetime_ns))
			keyed->n_growing = (uint32_t)(end - first);
	}
}

/* Returns the Python line below which the sites grow. */
static uint32_t growing_line(const struct growth *growth, const struct keyed_site *keyed)
{
	return line_of(growth->kinds, torsh_site_reader_stack(growth->sites, keyed->site));
}

/* Mark the addresses of the lines below which something grows. Returns false if there are none. */
static bool mark_growing(const struct growth *growth, bool *is_wanted)
{
	const struct recorded_stack *stacks = growth->kinds->process->tables->stacks;
	bool is_some = false;

	for (size_t i = 0; i < growth->n_keyed; i++) {
		if (!growth->keyed[i].n_growing)
			continue;
		is_wanted[stacks[growing_line(growth, &growth->keyed[i])].address] = true;
		is_some = true;
	}
	return is_some;
}

/* Count a stack of a line below which something grows. */
static void count_line(struct growth *growth, uint32_t line, uint64_t allocs)
{
	growth->counts = torsh_array_reserve(growth->counts, growth->n_counts, &growth->counts_room,
					     sizeof(*growth->counts));
	growth->counts[growth->n_counts++] = (struct line_count){
		.address = growth->kinds->process->tables->stacks[line].address,
		.key = key_of(growth, line),
		.allocs = allocs,
	};
}

/* Get what the stacks of all marked lines allocated. */
static void count_marked(struct growth *growth, const bool *is_wanted)
{
	const struct recorded_process *process = growth->kinds->process;
	/* by depth: the innermost line of Python, 0: none */
	uint32_t *lines = torsh_need_items(NULL, 0, STACK_PATH_ROOM, sizeof(*lines));
	struct stack_path path;

	torsh_stack_path_start(&path, process);
	for (size_t i = 0; i < process->totals.n; i++) {
		struct allocation_count count = torsh_totals_count(&process->totals, i);
		uint32_t line, address;

		for (size_t k = torsh_stack_path_take(&path, count.stack); k <= path.depth; k++)
			lines[k] = torsh_is_python_line(process, path.stacks[k]) ? path.stacks[k]
										 : lines[k - 1];
		line = lines[path.depth];
		address = process->tables->stacks[line].address;
		if (line && is_wanted[address] &&
		    torsh_address_kind(growth->kinds, address) != FRAME_IMPORT)
			count_line(growth, line, count.allocs);
	}
	torsh_stack_path_end(&path);
	free(lines);
}

static void count_lines(struct growth *growth)
{
	bool *is_wanted = torsh_need_items(NULL, 0, growth->kinds->process->tables->n_addresses + 1,
					   sizeof(*is_wanted));

	if (mark_growing(growth, is_wanted))
		count_marked(growth, is_wanted);
	if (growth->n_counts)
		qsort(growth->counts, growth->n_counts, sizeof(*growth->counts), compare_counts);
	free(is_wanted);
}

/* Returns the number of the first count of a line, or of the first one after the line. */
static size_t find_count(const struct growth *growth, const struct line_count *line, bool is_after)
{
	size_t low = 0, high = growth->n_counts;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_lines(&growth->counts[middle], line);

		if (order < 0 || (is_after && !order))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Returns an upper bound of how often a Python line ran: each call allocates something once. The
 * lowest counts are ignored (torsh_call_rank), because some is allocated only by the first call.
 */
static uint64_t calls_of(struct growth *growth, uint32_t line)
{
	struct line_count of = {.address = growth->kinds->process->tables->stacks[line].address,
				.key = key_of(growth, line)};
	size_t first = find_count(growth, &of, false), end = find_count(growth, &of, true);

	return first < end ? growth->counts[first + torsh_call_rank(end - first)].allocs : 0;
}

void torsh_import_growth_drop(struct kept_import_stack *found, struct address_kinds *kinds,
			      const struct site_reader *sites)
{
	struct growth growth = {
		.kinds = kinds,
		.sites = sites,
		.keyed = torsh_need_items(NULL, 0, sites->n + 1, sizeof(*growth.keyed)),
		.keys = torsh_need_items(NULL, 0, STACK_PATH_ROOM, sizeof(*growth.keys)),
	};

	growth.keys[0] = UINT64_C(0xcbf29ce484222325);
	torsh_stack_path_start(&growth.path, kinds->process);
	find_growing(&growth, found);
	count_lines(&growth);
	for (size_t first = 0; first < growth.n_keyed; first++) {
		const struct keyed_site *keyed = &growth.keyed[first];

		if (!keyed->n_growing ||
		    calls_of(&growth, growing_line(&growth, keyed)) < FEW_CALLS)
			continue;
		for (size_t i = 0; i < keyed->n_growing; i++)
			found[keyed[i].site].stack = 0;
	}
	torsh_stack_path_end(&growth.path);
	free(growth.keys);
	free(growth.keyed);
	free(growth.counts);
}
