/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/holders.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/input/target.h"
#include "tools/writer/reachability/allocator_maps.h"

#define LARGE_SHARE 65536u /* of all that is kept: most sites of a large program keep less */

/* A site's kept blocks. */
struct kept {
	uint32_t site, block; /* one of them */
	uint64_t bytes;
};

static bool is_kept(uint8_t verdict)
{
	return verdict == VERDICT_REACHABLE || verdict == VERDICT_POSSIBLE;
}

/* Move the sites that keep at least so many bytes to the front; returns their number. */
static uint32_t put_large_first(struct kept *kept, uint32_t n, uint64_t least)
{
	uint32_t n_large = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct kept of = kept[i];

		if (of.bytes < least)
			continue;
		kept[i] = kept[n_large];
		kept[n_large++] = of;
	}
	return n_large;
}

static int compare_kept(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/*
 * Returns the kept blocks of the sites that have any, first of those that keep most; *n_sites
 * becomes their number, or that of the large ones, if these are enough.
 */
static struct kept *sum_kept(const struct block_index *index, const struct verdicts *verdicts,
			     uint32_t *n_sites)
{
	struct kept *kept = torsh_memory_new(*n_sites, sizeof(*kept));
	uint64_t bytes = 0;
	uint32_t n, n_large;

	for (uint32_t i = 0; i < index->n; i++) {
		struct kept *of = &kept[index->blocks[i].site];

		if (!is_kept(verdicts->of[i]))
			continue;
		of->site = index->blocks[i].site;
		of->block = i;
		of->bytes += torsh_block_size(&index->blocks[i]);
		bytes += torsh_block_size(&index->blocks[i]);
	}
	n = put_large_first(kept, *n_sites, 1);
	n_large = put_large_first(kept, n, bytes / LARGE_SHARE);
	*n_sites = n_large < HOLDERS_MAX ? n : n_large;
	qsort(kept, *n_sites, sizeof(*kept), compare_kept);
	return kept;
}

/* ---- roots ----------------------------------------------------------------------------------- */

/* Where the file of the area is loaded. */
static uint64_t load_address(const struct memory_areas *areas, const struct memory_area *area)
{
	for (uint32_t i = 0; i < areas->n; i++) {
		if (areas->items[i].path && !strcmp(areas->items[i].path, area->path))
			return areas->items[i].begin - areas->items[i].file_offset;
	}
	return 0;
}

static pid_t thread_of(const struct stopped_threads *threads, const struct memory_area *area)
{
	for (uint32_t i = 0; i < threads->n; i++) {
		uint64_t at = threads->items[i].stack_pointer;

		if (at >= area->begin && at < area->end)
			return threads->items[i].tid;
	}
	return 0;
}

static void describe_root(struct holder *holder, const struct scan *scan, uint64_t address,
			  const struct target *target)
{
	const struct memory_area *area = torsh_memory_areas_find(scan->areas, address);
	const char *mapper;

	holder->address = address;
	holder->root = ROOT_REGISTER;
	if (!address || !area)
		return;
	holder->tid = thread_of(scan->threads, area);
	holder->root = holder->tid ? ROOT_STACK : ROOT_MAPPING;
	if (area->path) {
		holder->root = ROOT_GLOBAL;
		holder->path = torsh_memory_text(area->path);
		holder->address -= load_address(scan->areas, area);
	} else if (!holder->tid) {
		mapper = torsh_mapper_of(target, address);
		holder->path = mapper ? torsh_memory_text(mapper) : NULL;
	}
}

/* ---- ways ------------------------------------------------------------------------------------ */

/* Put the way's blocks from the last one back to the root's; returns the root's address. */
static uint64_t find_way(struct holder *holder, const struct pointer_graph *graph,
			 const struct verdicts *verdicts, uint32_t block)
{
	const struct indexed_block *blocks = graph->index->blocks;
	uint32_t n = 0, last = block;

	for (; block != NO_BLOCK; n++, block = torsh_verdicts_parent(verdicts, last)) {
		uint32_t at = n < HOLDER_BLOCKS ? n : HOLDER_BLOCKS / 2 + n % (HOLDER_BLOCKS / 2);

		holder->sites[at] = blocks[block].site;
		holder->bytes[at] = torsh_block_size(&blocks[block]);
		last = block;
	}
	holder->n_blocks = n < HOLDER_BLOCKS ? n : HOLDER_BLOCKS;
	holder->n_left_out = n - holder->n_blocks;
	return graph->root_addresses[verdicts->parents[last] - 1];
}

static void reverse(struct holder *holder)
{
	for (uint32_t i = 0, k = holder->n_blocks - 1; i < k; i++, k--) {
		uint32_t site = holder->sites[i];
		uint64_t bytes = holder->bytes[i];

		holder->sites[i] = holder->sites[k];
		holder->bytes[i] = holder->bytes[k];
		holder->sites[k] = site;
		holder->bytes[k] = bytes;
	}
}

static bool has_way(const struct holders *holders, uint32_t site)
{
	for (uint32_t i = 0; i < holders->n; i++) {
		if (holders->items[i].site == site)
			return true;
	}
	return false;
}

void torsh_holders_add(struct holders *holders, const struct scan *scan,
		       const struct verdicts *verdicts, const struct target *target)
{
	const struct pointer_graph *graph = scan->graph;
	uint32_t n_sites = target->state.heap.n_sites;
	struct kept *kept = sum_kept(graph->index, verdicts, &n_sites);

	for (uint32_t i = 0; i < n_sites && i < HOLDERS_MAX; i++) {
		struct holder holder = {.site = kept[i].site};

		if (has_way(holders, holder.site))
			continue;
		describe_root(&holder, scan, find_way(&holder, graph, verdicts, kept[i].block),
			      target);
		reverse(&holder);
		holders->items = torsh_array_reserve(holders->items, holders->n, &holders->capacity,
						     sizeof(*holders->items));
		holders->items[holders->n++] = holder;
	}
	free(kept);
}

void torsh_holders_free(struct holders *holders)
{
	for (uint32_t i = 0; i < holders->n; i++)
		free(holders->items[i].path);
	free(holders->items);
	*holders = (struct holders){0};
}
