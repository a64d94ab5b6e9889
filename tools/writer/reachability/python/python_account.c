/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/python/python_account.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/reachability/python/python_names.h"
#include "tools/writer/reachability/python/python_text.h"

/* To name an owner takes some reads of the memory: only for those that have as much. */
#define SMALLEST_BYTES 32768u
#define SMALLEST_SHARE 2000u /* of all bytes */
#define WAY_MAX 64u /* blocks from sys.modules to a variable */

static uint64_t bytes_of(const struct python_heap *heap, uint32_t block)
{
	return torsh_block_size(&heap->index->blocks[block]);
}

static bool is_module(const struct python_heap *heap, uint32_t block)
{
	const struct python_type *type =
		block == NO_BLOCK ? NULL : torsh_python_heap_type(heap, block);

	return type && type->kind == PYTHON_MODULE;
}

/* ---- types ----------------------------------------------------------------------------------- */

/*
 * Count each block for the type of its object; one without an object for that of the block that
 * leads to it. type_of has the numbers of types + 1.
 */
static void count_block(struct python_type_sum *sums, const struct python_heap *heap,
			const struct verdicts *verdicts, uint32_t *type_of, uint32_t block,
			uint32_t parent)
{
	bool is_lost =
		verdicts->of[block] == VERDICT_LOST || verdicts->of[block] == VERDICT_INDIRECT;
	uint32_t type = heap->type_of[block];
	struct python_type_sum *sum;

	type_of[block] = type ? type : parent == NO_BLOCK ? 0 : type_of[parent];
	if (!type_of[block])
		return;
	sum = &sums[type_of[block] - 1];
	*(is_lost ? &sum->lost_objects : &sum->objects) += type != 0;
	*(is_lost ? &sum->lost_bytes : &sum->bytes) += bytes_of(heap, block);
}

static int compare_types(const void *a, const void *b)
{
	const struct python_type_sum *x = a, *y = b;
	uint64_t of_x = x->bytes + x->lost_bytes, of_y = y->bytes + y->lost_bytes;

	return (of_x < of_y) - (of_x > of_y);
}

/* Name the types with most bytes, and put them first. Returns their number. */
static uint32_t choose_types(struct python_type_sum *sums, const struct python_types *types)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < types->n; i++) {
		if (sums[i].objects + sums[i].lost_objects) {
			sums[n] = sums[i];
			sums[n++].name = torsh_memory_text(types->items[i]->name);
		}
	}
	qsort(sums, n, sizeof(*sums), compare_types);
	for (uint32_t i = PYTHON_ROWS_MAX; i < n; i++)
		free(sums[i].name);
	return n < PYTHON_ROWS_MAX ? n : PYTHON_ROWS_MAX;
}

/* Blocks that are reached come first, each behind the one that leads to it. */
static void sum_types(struct python_account *account, const struct python_heap *heap,
		      const struct verdicts *verdicts, const struct python_reach *reach)
{
	uint32_t n = heap->index->n;
	uint32_t *type_of = torsh_memory_new((size_t)n + 1, sizeof(*type_of));
	struct python_type_sum *sums = torsh_memory_new((size_t)heap->types.n + 1, sizeof(*sums));

	for (uint32_t i = 0; i < reach->n; i++)
		count_block(sums, heap, verdicts, type_of, reach->order[i],
			    torsh_python_reach_parent(reach, reach->order[i]));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t block = verdicts->order[i];

		if (!torsh_python_reaches(reach, block))
			count_block(sums, heap, verdicts, type_of, block,
				    torsh_verdicts_parent(verdicts, block));
	}
	for (uint32_t i = 0; i < heap->types.n; i++) {
		account->objects += sums[i].objects + sums[i].lost_objects;
		account->bytes += sums[i].bytes + sums[i].lost_bytes;
	}
	account->types = sums;
	account->n_types = choose_types(sums, &heap->types);
	free(type_of);
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* Returns whether the block is a dict that has the variables of a module. */
static bool has_variables(const struct python_heap *heap, const struct python_reach *reach,
			  uint32_t block)
{
	const struct python_type *type =
		block == NO_BLOCK ? NULL : torsh_python_heap_type(heap, block);

	return type && type->kind == PYTHON_DICT &&
	       is_module(heap, torsh_python_reach_parent(reach, block));
}

struct owner_sum {
	uint32_t block; /* of the variable's value, or of the module */
	uint64_t objects, bytes;
};

struct owner_sums {
	struct owner_sum *items;
	uint32_t n;
	size_t capacity;
};

/* Returns whether the block is a module, or the value of one's variable. */
static bool is_owner(const struct python_heap *heap, const struct python_reach *reach,
		     uint32_t block, uint32_t parent)
{
	uint32_t before = parent == NO_BLOCK ? NO_BLOCK : torsh_python_reach_parent(reach, parent);

	return is_module(heap, block) ||
	       (has_variables(heap, reach, before) && !torsh_python_heap_type(heap, parent));
}

/* A variable leads to what its value does; a module to what none of its variables does. */
static void sum_owners(struct owner_sums *sums, struct python_account *account,
		       const struct python_heap *heap, const struct python_reach *reach)
{
	account->owner_of = torsh_memory_new((size_t)heap->index->n + 1, sizeof(uint32_t));
	for (uint32_t i = 0; i < reach->n; i++) {
		uint32_t block = reach->order[i];
		uint32_t parent = torsh_python_reach_parent(reach, block);
		uint32_t owner = parent == NO_BLOCK ? 0 : account->owner_of[parent];

		if (is_owner(heap, reach, block, parent)) {
			sums->items = torsh_array_reserve(sums->items, sums->n, &sums->capacity,
							  sizeof(*sums->items));
			sums->items[sums->n].block = block;
			owner = ++sums->n;
		}
		account->owner_of[block] = owner;
		if (!owner)
			continue;
		sums->items[owner - 1].objects += heap->type_of[block] != 0;
		sums->items[owner - 1].bytes += bytes_of(heap, block);
	}
}

static int compare_owners(const void *a, const void *b)
{
	const struct owner_sum *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Returns the file of the module through which the way leads. */
static char *file_of(struct python_heap *heap, const uint32_t *way, uint32_t n)
{
	char text[PYTHON_TEXT_BYTES];

	for (uint32_t i = 0; i + 1 < n; i++) {
		const struct python_type *type = torsh_python_heap_type(heap, way[i + 1]);

		if (is_module(heap, way[i]) && type && type->kind == PYTHON_DICT &&
		    torsh_python_dict_str(&heap->types, torsh_python_object(heap, way[i + 1]),
					  "__file__", text))
			return torsh_memory_text(text);
	}
	return NULL;
}

static void name_owner(struct python_owner *owner, struct python_heap *heap,
		       const struct python_reach *reach, const struct owner_sum *sum)
{
	struct python_name names[WAY_MAX];
	uint32_t way[WAY_MAX], n = 0;

	for (uint32_t block = sum->block; block != NO_BLOCK && n < WAY_MAX;
	     block = torsh_python_reach_parent(reach, block))
		way[WAY_MAX - ++n] = block;
	torsh_python_names_find(heap, way + WAY_MAX - n, n, NULL, names);
	*owner = (struct python_owner){
		.name = torsh_memory_text(names[n - 1].name ? names[n - 1].name : "?"),
		.type = torsh_memory_text(names[n - 1].type ? names[n - 1].type : "?"),
		.file = file_of(heap, way + WAY_MAX - n, n),
		.objects = sum->objects,
		.bytes = sum->bytes,
	};
	for (uint32_t i = 0; i < n; i++)
		free(names[i].name);
}

void torsh_python_account_make(struct python_account *account, struct python_heap *heap,
			       const struct verdicts *verdicts, const struct python_reach *reach)
{
	struct owner_sums sums = {0};

	*account = (struct python_account){
		.is_there = heap->type_of != NULL,
		.pool_bytes = heap->pool_bytes,
		.pool_used_bytes = heap->pool_used_bytes,
	};
	if (!account->is_there)
		return;
	sum_types(account, heap, verdicts, reach);
	sum_owners(&sums, account, heap, reach);
	if (sums.n)
		qsort(sums.items, sums.n, sizeof(*sums.items), compare_owners);
	while (account->n_owners < sums.n && account->n_owners < PYTHON_ROWS_MAX &&
	       sums.items[account->n_owners].bytes >= SMALLEST_BYTES &&
	       sums.items[account->n_owners].bytes >= account->bytes / SMALLEST_SHARE)
		account->n_owners++;
	account->owners = torsh_memory_new((size_t)account->n_owners + 1, sizeof(*account->owners));
	for (uint32_t i = 0; i < account->n_owners; i++)
		name_owner(&account->owners[i], heap, reach, &sums.items[i]);
	free(sums.items);
}

void torsh_python_account_trim(struct python_account *account)
{
	free(account->owner_of);
	account->owner_of = NULL;
}

void torsh_python_account_free(struct python_account *account)
{
	for (uint32_t i = 0; i < account->n_types; i++)
		free(account->types[i].name);
	for (uint32_t i = 0; i < account->n_owners; i++) {
		free(account->owners[i].name);
		free(account->owners[i].type);
		free(account->owners[i].file);
	}
	free(account->types);
	free(account->owners);
	torsh_python_account_trim(account);
	*account = (struct python_account){0};
}
