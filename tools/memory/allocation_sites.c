/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/allocation_sites.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/arena.h"

static const char *name_of(const struct recorded_process *process, uint32_t label)
{
	return label && label <= process->tables->n_functions
		       ? process->tables->functions[label - 1].name
		       : NULL;
}

const char *torsh_site_operator(const struct allocation_site *site)
{
	return name_of(site->process, site->operator);
}

const char *torsh_site_module(const struct allocation_site *site)
{
	return name_of(site->process, site->module);
}

const char *torsh_site_mapped_path(const struct allocation_site *site)
{
	return site->mapped_path && site->mapped_path <= site->process->n_mapped_paths
		       ? site->process->mapped_paths[site->mapped_path - 1]
		       : NULL;
}

const char *torsh_site_mapped_as(const struct allocation_site *site)
{
	static const char memfd[] = "/memfd:";
	const char *path = torsh_site_mapped_path(site);

	if (site->is_arena)
		return "CPython arena";
	if (path && strncmp(path, memfd, sizeof(memfd) - 1) == 0)
		return "memfd";
	switch (site->mapped_as) {
	case 0:
	case MAPPED_ANONYMOUS:
		return NULL;
	case MAPPED_ANONYMOUS_SHARED:
		return "shared memory";
	case MAPPED_FILE_PRIVATE:
		return "file";
	case MAPPED_FILE_SHARED:
		return "shared file";
	case MAPPED_BY_SYSTEM_V:
		return "shared memory (System V)";
	default:
		return "several kinds";
	}
}

void torsh_sites_merge_into(struct allocation_site *to, const struct allocation_site *from)
{
	to->blocks += from->blocks;
	to->bytes += from->bytes;
	to->variance.blocks += from->variance.blocks;
	to->variance.bytes += from->variance.bytes;
	to->usable_bytes += from->usable_bytes;
	for (int i = 0; i < N_BLOCK_CLASSES; i++) {
		to->classes.blocks[i] += from->classes.blocks[i];
		to->classes.bytes[i] += from->classes.bytes[i];
	}
	if (from->mapped_as && to->mapped_path != from->mapped_path)
		to->mapped_path = to->mapped_as ? MAPPED_SEVERAL : from->mapped_path;
	to->mapped_as |= from->mapped_as;
	to->is_of_tensors = to->is_of_tensors || from->is_of_tensors;
	if (to->operator!= from->operator)
		to->operator= PROFILE_SEVERAL;
	if (to->module != from->module)
		to->module = PROFILE_SEVERAL;
	to->usable_is_known = to->usable_is_known && from->usable_is_known;
	to->has_times = to->has_times && from->has_times;
	if (from->first_step < to->first_step)
		to->first_step = from->first_step;
	if (from->last_step > to->last_step)
		to->last_step = from->last_step;
	if (from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
}

/* How sites are compared for merging: by the innermost depth frames, if depth is not 0. */
struct merge {
	int (*compare)(const struct allocation_site *a, const struct allocation_site *b,
		       size_t depth);
	size_t depth;
};

/* Equal ones are ordered by their index. */
static int compare_members(const void *a, const void *b, void *merge)
{
	const struct merge *by = merge;
	const struct allocation_site *x = *(struct allocation_site *const *)a,
				     *y = *(struct allocation_site *const *)b;
	int rc = by->compare(x, y, by->depth);

	return rc ? rc : (x > y) - (x < y);
}

/* Returns for each of the first n sites the first equal one. */
static struct allocation_site **find_first_equal(struct allocation_site *items, size_t n,
						 struct merge *by)
{
	struct allocation_site **sorted = torsh_need_items(NULL, 0, n + 1, sizeof(items));
	struct allocation_site **firsts = torsh_need_items(NULL, 0, n + 1, sizeof(items));
	struct allocation_site *first = NULL;
	bool is_sorted = true;

	for (size_t i = 0; i < n; i++) {
		sorted[i] = &items[i];
		is_sorted =
			is_sorted && (!i || by->compare(&items[i - 1], &items[i], by->depth) <= 0);
	}
	if (!is_sorted)
		qsort_r(sorted, n, sizeof(*sorted), compare_members, by);
	for (size_t i = 0; i < n; i++) {
		if (!first || by->compare(first, sorted[i], by->depth) != 0)
			first = sorted[i];
		firsts[sorted[i] - items] = first;
	}
	free(sorted);
	return firsts;
}

/* Merge equal ones among the first n_first into the first of them. Keeps the order. */
static void merge_equal(struct allocation_sites *sites, size_t n_first, struct merge by)
{
	struct allocation_site *items = sites->items, **firsts;
	size_t n = 0;

	if (n_first > sites->n)
		n_first = sites->n;
	firsts = find_first_equal(items, n_first, &by);
	for (size_t i = 0; i < n_first; i++) {
		if (firsts[i] == &items[i])
			continue;
		torsh_sites_merge_into(firsts[i], &items[i]);
		free(items[i].frames);
	}
	for (size_t i = 0; i < sites->n; i++) {
		if (i >= n_first || firsts[i] == &items[i])
			items[n++] = items[i];
	}
	free(firsts);
	sites->n = n;
}

void torsh_sites_merge_equal(struct allocation_sites *sites,
			     int (*compare)(const struct allocation_site *a,
					    const struct allocation_site *b, size_t depth))
{
	merge_equal(sites, sites->n, (struct merge){.compare = compare});
}

void torsh_sites_mark_arenas(struct allocation_sites *sites, struct symbols *symbols)
{
	for (size_t i = 0; i < sites->n; i++) {
		struct allocation_site *site = &sites->items[i];

		site->is_arena = torsh_arena_is(symbols, site->process, site->stack);
	}
}

int torsh_sites_compare_kinds(const struct allocation_site *a, const struct allocation_site *b)
{
	if (a->process != b->process)
		return a->process->number < b->process->number ? -1 : 1;
	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	return (int)a->is_arena - (int)b->is_arena;
}

static int compare_stacks(const struct allocation_site *one, const struct allocation_site *other,
			  size_t depth)
{
	const struct recorded_process *process = one->process;
	uint32_t x = one->stack, y = other->stack;
	int rc = torsh_sites_compare_kinds(one, other);

	if (rc)
		return rc;
	for (size_t i = 0; i < depth && x != y; i++) {
		const struct recorded_stack *node_x, *node_y;

		if (x >= process->tables->n_stacks)
			x = 0;
		if (y >= process->tables->n_stacks)
			y = 0;
		if (!x || !y)
			return !x ? -(y != 0) : 1;
		node_x = &process->tables->stacks[x];
		node_y = &process->tables->stacks[y];
		if (node_x->address != node_y->address)
			return node_x->address < node_y->address ? -1 : 1;
		x = node_x->parent;
		y = node_y->parent;
	}
	return 0;
}

static int compare_places(const struct allocation_site *one, const struct allocation_site *other,
			  size_t depth)
{
	int rc = torsh_sites_compare_kinds(one, other);

	(void)depth;
	if (rc)
		return rc;
	return one->stack < other->stack ? -1 : one->stack > other->stack;
}

void torsh_sites_merge_stacks(struct allocation_sites *sites, struct symbols *symbols)
{
	bool is_changed = false;

	for (size_t i = 0; i < sites->n; i++) {
		struct allocation_site *site = &sites->items[i];
		/* The view only appends to the process's table of stacks. */
		uint32_t shown = torsh_stack_view((struct recorded_process *)site->process,
						  site->stack, symbols, sites->view);

		is_changed |= shown != site->stack;
		site->stack = shown;
	}
	if (sites->depth || is_changed)
		merge_equal(
			sites, sites->n,
			(struct merge){.compare = sites->depth ? compare_stacks : compare_places,
				       .depth = sites->depth});
}

/* Texts are interned: equal texts have equal pointers. */
static int compare_frame(const struct frame *a, const struct frame *b)
{
	if (a->function != b->function)
		return (uintptr_t)a->function < (uintptr_t)b->function ? -1 : 1;
	if (a->file != b->file)
		return (uintptr_t)a->file < (uintptr_t)b->file ? -1 : 1;
	if (a->module != b->module)
		return (uintptr_t)a->module < (uintptr_t)b->module ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->is_inlined != b->is_inlined)
		return a->is_inlined ? -1 : 1;
	if (a->line)
		return 0;
	return a->address < b->address ? -1 : a->address > b->address;
}

static int compare_named(const struct allocation_site *one, const struct allocation_site *other,
			 size_t depth)
{
	int rc = torsh_sites_compare_kinds(one, other);

	(void)depth;
	if (rc)
		return rc;
	if (one->n_frames != other->n_frames)
		return one->n_frames < other->n_frames ? -1 : 1;
	for (size_t i = 0; i < one->n_frames && !rc; i++)
		rc = compare_frame(one->frames[i], other->frames[i]);
	return rc;
}

/* Get the frames of a site, innermost first, or its first `depth`. Returns their number. */
static size_t list_frames(const struct allocation_site *site, struct symbols *symbols, size_t depth,
			  const struct frame **out)
{
	const struct recorded_tables *tables = site->process->tables;
	size_t n = 0;

	for (uint32_t stack = site->stack; stack && stack < tables->n_stacks;
	     stack = tables->stacks[stack].parent) {
		const struct frames *frames =
			torsh_symbols_frames(symbols, site->process, tables->stacks[stack].address);

		for (size_t i = 0; i < frames->n; i++, n++) {
			if (depth && n == depth)
				return n;
			if (out)
				out[n] = &frames->frames[i];
		}
	}
	return n;
}

/* There may be a million sites: none has more room than it needs. */
static void name_holder(struct allocation_site *site, struct symbols *symbols, size_t depth)
{
	site->n_frames = list_frames(site, symbols, depth, NULL);
	if (!site->n_frames)
		return;
	site->frames = torsh_need_items(NULL, 0, site->n_frames, sizeof(*site->frames));
	list_frames(site, symbols, depth, site->frames);
}

void torsh_sites_name(struct allocation_sites *sites, struct symbols *symbols, size_t n_first)
{
	if (n_first > sites->n)
		n_first = sites->n;
	for (size_t i = 0; i < n_first; i++) {
		if (!sites->items[i].frames)
			name_holder(&sites->items[i], symbols, sites->depth);
	}
	merge_equal(sites, n_first, (struct merge){.compare = compare_named});
}

size_t *torsh_sites_find_alike(struct allocation_sites *sites, struct symbols *symbols)
{
	struct merge by = {.compare = compare_named};
	size_t *indexes = torsh_need_items(NULL, 0, sites->n + 1, sizeof(*indexes));
	struct allocation_site **firsts;

	for (size_t i = 0; i < sites->n; i++) {
		if (!sites->items[i].frames)
			name_holder(&sites->items[i], symbols, sites->depth);
	}
	firsts = find_first_equal(sites->items, sites->n, &by);
	for (size_t i = 0; i < sites->n; i++)
		indexes[i] = (size_t)(firsts[i] - sites->items);
	free(firsts);
	return indexes;
}

void torsh_sites_sum(const struct allocation_sites *sites, uint64_t *blocks, uint64_t *bytes)
{
	*blocks = sites->rest.blocks;
	*bytes = sites->rest.bytes;
	for (size_t i = 0; i < sites->n; i++) {
		*blocks += sites->items[i].blocks;
		*bytes += sites->items[i].bytes;
	}
}

struct estimate_variance torsh_sites_variance(const struct allocation_sites *sites)
{
	struct estimate_variance sum = {0};

	for (size_t i = 0; i < sites->n; i++) {
		sum.blocks += sites->items[i].variance.blocks;
		sum.bytes += sites->items[i].variance.bytes;
	}
	return sum;
}

void torsh_sites_free(struct allocation_sites *sites)
{
	for (size_t i = 0; i < sites->n; i++)
		free(sites->items[i].frames);
	free(sites->items);
	*sites = (struct allocation_sites){0};
}
