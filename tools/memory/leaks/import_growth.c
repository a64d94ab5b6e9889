/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/import_growth.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/* more blocks of one stack below a Python line are not kept on purpose, but grow */
#define GROWING_BLOCKS 128
#define GROWING_BYTES (UINT64_C(2) << 20)
/* likewise for a Python line, whatever it keeps */
#define FEW_CALLS 8u

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

/* What is known of a stack from its caller. */
struct keyed_caller {
	uint64_t key; /* see key_of */
	uint32_t line; /* the stack of its innermost line of Python; 0: none */
};

struct growth {
	struct address_kinds *kinds;
	const struct site_reader *sites;
	struct stack_path path;
	struct keyed_caller *callers; /* by depth of the path */
	struct keyed_site *keyed; /* sorted by key */
	size_t n_keyed;
	struct line_count *counts; /* of lines below which something grows; sorted */
	size_t n_counts, counts_room;
};

/* Returns what is known of a stack from what is known of its caller. */
static struct keyed_caller next_caller(struct growth *growth, struct keyed_caller caller,
				       uint32_t stack)
{
	const struct recorded_process *process = growth->kinds->process;
	uint32_t address = process->tables->stacks[stack].address;

	if (torsh_is_python_line(process, stack))
		caller.line = stack;
	if (torsh_address_kind(growth->kinds, address) == FRAME_INTERPRETER)
		return caller;
	caller.key = (caller.key ^ address) * UINT64_C(0x100000001b3);
	caller.key ^= caller.key >> 29;
	return caller;
}

static struct keyed_caller caller_of(struct growth *growth, uint32_t stack)
{
	struct stack_path *path = &growth->path;

	for (size_t i = torsh_stack_path_take(path, stack); i <= path->depth; i++)
		growth->callers[i] = next_caller(growth, growth->callers[i - 1], path->stacks[i]);
	return growth->callers[path->depth];
}

/*
 * Returns the key of a stack: of its Python lines and the native frames inside of them, without the
 * interpreter's: a call has one key whether CPython has specialised it or not.
 */
static uint64_t key_of(struct growth *growth, uint32_t stack)
{
	return caller_of(growth, stack).key;
}

/*
 * Get the key of a site that an import keeps. Returns false if it has no line of Python, or if that
 * belongs to the import system, which runs no loop.
 */
static bool find_key(struct growth *growth, const struct kept_import_stack *found, size_t site,
		     uint64_t *key)
{
	const struct recorded_stack *stacks = growth->kinds->process->tables->stacks;
	struct keyed_caller caller;

	if (!found[site].stack)
		return false;
	caller = caller_of(growth, torsh_site_reader_stack(growth->sites, site));
	*key = caller.key;
	return caller.line &&
	       torsh_address_kind(growth->kinds, stacks[caller.line].address) != FRAME_IMPORT;
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

/* Sums of blocks by a part of the key: most keys have too few to grow, and are not sorted. */
struct key_sums {
	uint8_t *blocks; /* FEW_CALLS: as many or more */
	unsigned shift;
};

static uint8_t *sum_of(const struct key_sums *sums, uint64_t key)
{
	return &sums->blocks[(key * UINT64_C(0x9e3779b97f4a7c15)) >> sums->shift];
}

static struct key_sums add_up(struct growth *growth, const struct kept_import_stack *found)
{
	struct key_sums sums = {.shift = 64 - 10};
	uint64_t key;

	while (sums.shift > 64 - 24 && (growth->sites->n * 2) >> (64 - sums.shift))
		sums.shift--;
	sums.blocks = torsh_need_items(NULL, 0, (size_t)1 << (64 - sums.shift), 1);
	for (size_t i = 0; i < growth->sites->n; i++) {
		uint64_t blocks = torsh_site_reader_few_blocks(growth->sites, i);
		uint8_t *sum;

		if (!find_key(growth, found, i, &key))
			continue;
		sum = sum_of(&sums, key);
		*sum = blocks < FEW_CALLS - *sum ? (uint8_t)(*sum + blocks) : FEW_CALLS;
	}
	return sums;
}

/* Sort the sites by key that may grow. */
static void sort_keyed(struct growth *growth, const struct kept_import_stack *found)
{
	struct key_sums sums = add_up(growth, found);
	size_t room = 0;
	uint64_t key;

	for (size_t i = 0; i < growth->sites->n; i++) {
		if (!find_key(growth, found, i, &key) || *sum_of(&sums, key) < FEW_CALLS)
			continue;
		growth->keyed = torsh_array_reserve(growth->keyed, growth->n_keyed, &room,
						    sizeof(*growth->keyed));
		growth->keyed[growth->n_keyed++] =
			(struct keyed_site){.key = key, .site = (uint32_t)i};
	}
	free(sums.blocks);
	if (growth->n_keyed)
		qsort(growth->keyed, growth->n_keyed, sizeof(*growth->keyed), compare_keys);
}

/* Find the sites that an import keeps and that grow. */
static void find_growing(struct growth *growth, const struct kept_import_stack *found)
{
	const struct site_reader *sites = growth->sites;
	uint64_t lifetime_ns = torsh_import_lifetime(sites);

	sort_keyed(growth, found);
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
	return torsh_innermost_line(growth->kinds->process,
				    torsh_site_reader_stack(growth->sites, keyed->site));
}

static int compare_wanted(const void *a, const void *b)
{
	return compare_lines(a, b);
}

/* The lines below which something grows. */
struct growing_lines {
	struct line_count *items; /* sorted; without counts */
	size_t n;
	bool *has_address; /* by address */
};

static struct growing_lines find_lines(struct growth *growth)
{
	const struct recorded_stack *stacks = growth->kinds->process->tables->stacks;
	struct growing_lines lines = {0};
	size_t room = 0;

	for (size_t i = 0; i < growth->n_keyed; i++) {
		uint32_t line;

		if (!growth->keyed[i].n_growing)
			continue;
		line = growing_line(growth, &growth->keyed[i]);
		lines.items =
			torsh_array_reserve(lines.items, lines.n, &room, sizeof(*lines.items));
		lines.items[lines.n++] = (struct line_count){.address = stacks[line].address,
							     .key = key_of(growth, line)};
	}
	if (!lines.n)
		return lines;
	qsort(lines.items, lines.n, sizeof(*lines.items), compare_wanted);
	lines.has_address =
		torsh_need_items(NULL, 0, growth->kinds->process->tables->n_addresses + 1,
				 sizeof(*lines.has_address));
	for (size_t i = 0; i < lines.n; i++)
		lines.has_address[lines.items[i].address] = true;
	return lines;
}

/* Count a stack of a line if something grows below that line. */
static void count_line(struct growth *growth, const struct growing_lines *wanted, uint32_t line,
		       uint64_t allocs)
{
	struct line_count count = {
		.address = growth->kinds->process->tables->stacks[line].address,
		.allocs = allocs,
	};

	if (!wanted->has_address[count.address])
		return;
	count.key = key_of(growth, line);
	if (!bsearch(&count, wanted->items, wanted->n, sizeof(count), compare_wanted))
		return;
	growth->counts = torsh_array_reserve(growth->counts, growth->n_counts, &growth->counts_room,
					     sizeof(*growth->counts));
	growth->counts[growth->n_counts++] = count;
}

/* Get what the stacks of all these lines allocated. */
static void count_wanted(struct growth *growth, const struct growing_lines *wanted)
{
	const struct recorded_process *process = growth->kinds->process;
	/* by depth: the innermost line of Python, 0: none */
	uint32_t *lines = torsh_need_items(NULL, 0, STACK_PATH_ROOM, sizeof(*lines));
	struct stack_path path;

	torsh_stack_path_start(&path, process);
	for (size_t i = 0; i < process->totals.n; i++) {
		struct allocation_count count = torsh_totals_count(&process->totals, i);

		for (size_t k = torsh_stack_path_take(&path, count.stack); k <= path.depth; k++)
			lines[k] = torsh_is_python_line(process, path.stacks[k]) ? path.stacks[k]
										 : lines[k - 1];
		if (lines[path.depth])
			count_line(growth, wanted, lines[path.depth], count.allocs);
	}
	torsh_stack_path_end(&path);
	free(lines);
}

static void count_lines(struct growth *growth)
{
	struct growing_lines wanted = find_lines(growth);

	if (wanted.n)
		count_wanted(growth, &wanted);
	if (growth->n_counts)
		qsort(growth->counts, growth->n_counts, sizeof(*growth->counts), compare_counts);
	free(wanted.items);
	free(wanted.has_address);
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
		.callers = torsh_need_items(NULL, 0, STACK_PATH_ROOM, sizeof(*growth.callers)),
	};

	growth.callers[0].key = UINT64_C(0xcbf29ce484222325);
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
	free(growth.callers);
	free(growth.keyed);
	free(growth.counts);
}
