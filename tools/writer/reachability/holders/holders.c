/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/holders/holders.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/reachability/holders/holder_uses.h"
#include "tools/writer/reachability/python/python_names.h"

#define HOLDERS_MIN 16u
#define LARGE_SHARE 4096u /* of all that is kept: most sites of a program keep less */

/* A site's kept blocks. */
struct kept {
	uint32_t site, block; /* one of them, of the owner that has most */
	uint32_t owner;
	uint64_t bytes, lead; /* of the owner before all others: an owner with over a half wins */
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

/* By Boyer and Moore's majority vote, with bytes as votes. */
static void vote(struct kept *kept, uint32_t block, uint32_t owner, uint64_t bytes)
{
	if (kept->lead && owner != kept->owner) {
		if (kept->lead > bytes) {
			kept->lead -= bytes;
			return;
		}
		bytes -= kept->lead;
		kept->lead = 0;
	}
	kept->block = block;
	kept->owner = owner;
	kept->lead += bytes;
}

static bool counts(const struct block_index *index, const struct verdicts *verdicts, uint32_t i)
{
	return is_kept(verdicts->of[i]) && !torsh_block_is_python(&index->blocks[i]);
}

/* Returns the bytes that are kept by site; *all becomes their sum. */
static uint64_t *sum_sites(const struct block_index *index, const struct verdicts *verdicts,
			   uint32_t n_sites, uint64_t *all)
{
	uint64_t *bytes = torsh_memory_new(n_sites, sizeof(*bytes));

	*all = 0;
	for (uint32_t i = 0; i < index->n; i++) {
		uint64_t size = torsh_block_size(&index->blocks[i]);

		if (!counts(index, verdicts, i))
			continue;
		bytes[index->blocks[i].site] += size;
		*all += size;
	}
	return bytes;
}

/* Returns how many sites keep at least so many bytes. */
static uint32_t count_sites(const uint64_t *bytes, uint32_t n_sites, uint64_t least)
{
	uint32_t n = 0;

	for (uint32_t site = 0; site < n_sites; site++)
		n += bytes[site] && bytes[site] >= least;
	return n;
}

/* Replace the bytes of each such site by its number + 1 among them, those of others by 0. */
static void number_sites(uint64_t *bytes, uint32_t n_sites, uint64_t least)
{
	uint32_t n = 0;

	for (uint32_t site = 0; site < n_sites; site++)
		bytes[site] = bytes[site] && bytes[site] >= least ? ++n : 0;
}

static void sum_blocks(struct kept *kept, const uint64_t *numbers, const struct block_index *index,
		       const struct verdicts *verdicts, const struct python_owners *owners)
{
	for (uint32_t i = 0; i < index->n; i++) {
		const struct indexed_block *block = &index->blocks[i];
		struct kept *of;

		if (!counts(index, verdicts, i) || !numbers[block->site])
			continue;
		of = &kept[numbers[block->site] - 1];
		of->site = block->site;
		vote(of, i, owners->of ? owners->of[i] : 0, torsh_block_size(block));
		of->bytes += torsh_block_size(block);
	}
}

/*
 * Returns the kept blocks of sites, first of those that keep most; *n_sites becomes their number:
 * that of the large ones, but at least HOLDERS_MIN if so many keep any.
 */
static struct kept *sum_kept(const struct block_index *index, const struct verdicts *verdicts,
			     const struct python_owners *owners, uint32_t *n_sites)
{
	uint64_t all, *bytes = sum_sites(index, verdicts, *n_sites, &all);
	uint64_t least = all / LARGE_SHARE;
	uint32_t n = count_sites(bytes, *n_sites, least), n_large;
	bool are_few = n < HOLDERS_MIN;
	struct kept *kept;

	/* Few are large: the largest of all. */
	if (are_few)
		n = count_sites(bytes, *n_sites, 1);
	number_sites(bytes, *n_sites, are_few ? 1 : least);
	kept = torsh_memory_new(n, sizeof(*kept));
	sum_blocks(kept, bytes, index, verdicts, owners);
	free(bytes);
	n_large = put_large_first(kept, n, least);
	*n_sites = n_large < HOLDERS_MIN ? n : n_large;
	qsort(kept, *n_sites, sizeof(*kept), compare_kept);
	if (n_large < HOLDERS_MIN && n > HOLDERS_MIN)
		*n_sites = HOLDERS_MIN;
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
			  const struct judged_moment *moment)
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
		mapper = torsh_judged_moment_mapper(moment, address);
		holder->path = mapper ? torsh_memory_text(mapper) : NULL;
	}
}

/* Before 3.11 a thread's state has its address only, which is above its stack's frames. */
static pid_t python_thread(const struct scan *scan, uint64_t thread, pid_t first)
{
	const struct memory_area *area;
	pid_t tid;

	if (scan->python->layout.at.tstate_native_id)
		return (pid_t)thread;
	area = torsh_memory_areas_find(scan->areas, thread);
	tid = area ? thread_of(scan->threads, area) : 0;
	return tid ? tid : first;
}

static void describe_variable(struct holder *holder, const struct scan *scan,
			      const struct python_frame *frame, uint32_t number,
			      const struct judged_moment *moment)
{
	struct python_heap *python = scan->python;
	struct python_place place;
	char name[PYTHON_TEXT_BYTES];

	torsh_python_frame_place(&place, &python->types, &python->layout, frame->address);
	holder->root = ROOT_LOCAL;
	holder->tid = python_thread(scan, frame->thread, moment->process);
	holder->function = place.function;
	holder->file = place.file;
	holder->line = place.line;
	if (torsh_python_variable(&python->types, &python->layout, frame->address, number, name))
		holder->variable = torsh_memory_text(name);
}

/* ---- ways ------------------------------------------------------------------------------------ */

struct way {
	uint32_t *blocks; /* from the root's on */
	uint32_t n;
	size_t capacity;
};

/* Find the way to the block. */
static void find_way(struct way *way, const struct verdicts *verdicts,
		     const struct python_reach *reach, uint32_t block)
{
	bool is_pythons = torsh_python_reaches(reach, block);

	way->n = 0;
	while (block != NO_BLOCK) {
		way->blocks = torsh_array_reserve(way->blocks, way->n, &way->capacity,
						  sizeof(*way->blocks));
		way->blocks[way->n++] = block;
		block = is_pythons ? torsh_python_reach_parent(reach, block)
				   : torsh_verdicts_parent(verdicts, block);
	}
	for (uint32_t i = 0, k = way->n - 1; i < k; i++, k--) {
		uint32_t other = way->blocks[i];

		way->blocks[i] = way->blocks[k];
		way->blocks[k] = other;
	}
}

/* A block that begins with an address of a module's constants has an object of C++. */
static void put_table(struct holder *holder, uint32_t at, const struct indexed_block *block,
		      const struct scan *scan)
{
	uint64_t word = torsh_memory_word(scan->reader, block->address);
	const struct memory_area *area =
		word % sizeof(word) ? NULL : torsh_memory_areas_find(scan->areas, word);

	if (!area || !area->is_file || area->is_writable)
		return;
	holder->table_paths[at] = torsh_memory_text(area->path);
	holder->tables[at] = word - load_address(scan->areas, area);
}

static void put_block(struct holder *holder, uint32_t at, const struct indexed_block *block,
		      const struct python_name *name, const struct scan *scan)
{
	holder->sites[at] = torsh_block_is_python(block) ? 0 : block->site;
	holder->bytes[at] = torsh_block_size(block);
	holder->names[at] = name->name ? torsh_memory_text(name->name) : NULL;
	holder->types[at] = name->type ? torsh_memory_text(name->type) : NULL;
	if (!name->type && !torsh_block_is_python(block))
		put_table(holder, at, block, scan);
}

/* The first and the last ones of a long way. */
static void put_way(struct holder *holder, const struct way *way, const struct scan *scan)
{
	struct python_heap *python = scan->python;
	struct python_name *names = torsh_memory_new(way->n, sizeof(*names));
	uint32_t n = 0, at = 0;

	torsh_python_names_find(python, way->blocks, way->n, holder->variable, names);
	if (holder->root != ROOT_LOCAL)
		names[0].is_inner = holder->root == ROOT_MODULES;
	for (uint32_t i = 0; i < way->n; i++)
		n += !names[i].is_inner;
	holder->n_blocks = n < HOLDER_BLOCKS ? n : HOLDER_BLOCKS;
	holder->n_left_out = n - holder->n_blocks;
	for (uint32_t i = 0; i < way->n; at += !names[i++].is_inner) {
		bool is_last = at >= holder->n_left_out + HOLDER_BLOCKS / 2;

		if (!names[i].is_inner && (at < HOLDER_BLOCKS / 2 || is_last))
			put_block(holder, is_last ? at - holder->n_left_out : at,
				  &python->index->blocks[way->blocks[i]], &names[i], scan);
	}
	for (uint32_t i = 0; i < way->n; i++)
		free(names[i].name);
	free(names);
}

static bool has_way(const struct holders *holders, uint32_t site)
{
	for (uint32_t i = 0; i < holders->n; i++) {
		if (holders->items[i].site == site)
			return true;
	}
	return false;
}

void torsh_holders_add(struct holders *holders, const struct holders *others,
		       const struct scan *scan, const struct verdicts *verdicts,
		       const struct python_owners *owners, const struct judged_moment *moment)
{
	const struct pointer_graph *graph = scan->graph;
	uint32_t n_sites = moment->n_sites;
	struct kept *kept = sum_kept(graph->index, verdicts, owners, &n_sites);
	struct way way = {0};

	for (uint32_t i = 0; i < n_sites && i < HOLDERS_MAX; i++) {
		struct holder holder = {.site = kept[i].site};
		const struct python_variable *variable;

		if (others && has_way(others, holder.site))
			continue;
		find_way(&way, verdicts, owners->reach, kept[i].block);
		variable = torsh_python_reach_variable(owners->reach, way.blocks[0]);
		if (!torsh_python_reaches(owners->reach, kept[i].block))
			describe_root(&holder, scan,
				      graph->root_addresses[verdicts->parents[way.blocks[0]] - 1],
				      moment);
		else if (variable)
			describe_variable(&holder, scan,
					  &owners->reach->frames.frames[variable->frame],
					  variable->number, moment);
		else
			holder.root = ROOT_MODULES;
		put_way(&holder, &way, scan);
		holder.use.address = graph->index->blocks[kept[i].block].address;
		holders->items = torsh_array_reserve(holders->items, holders->n, &holders->capacity,
						     sizeof(*holders->items));
		holders->items[holders->n++] = holder;
	}
	torsh_holder_uses_find(holders, moment);
	free(way.blocks);
	free(kept);
}

void torsh_holders_free(struct holders *holders)
{
	for (uint32_t i = 0; i < holders->n; i++) {
		free(holders->items[i].path);
		free(holders->items[i].variable);
		free(holders->items[i].function);
		free(holders->items[i].file);
		for (uint32_t k = 0; k < holders->items[i].n_blocks; k++) {
			free(holders->items[i].names[k]);
			free(holders->items[i].types[k]);
			free(holders->items[i].table_paths[k]);
		}
	}
	free(holders->items);
	*holders = (struct holders){0};
}
