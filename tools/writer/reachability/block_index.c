/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/block_index.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

#define ADDRESS_BITS 47
#define GIGABYTE_BITS 30
#define PART_BITS 8 /* few blocks begin in a part: they share a cache line or two */
#define N_GIGABYTES (1u << (ADDRESS_BITS - GIGABYTE_BITS))
#define DIGIT_BITS 8
#define N_DIGITS (1u << DIGIT_BITS)
#define ADDRESS_DIGITS 6u
#define N_LEVELS (ADDRESS_DIGITS + 4u) /* digits of an address and of a site */
#define FEW 32u /* blocks that are put in order by comparing them */
#define MEGABYTE_BITS 20
#define N_PARTS (1u << (MEGABYTE_BITS - PART_BITS)) /* of a megabyte */

void torsh_block_index_create(struct block_index *index)
{
	*index = (struct block_index){.begin = UINT64_MAX};
}

void torsh_block_index_add(struct block_index *index, uint64_t address, uint64_t size,
			   uint32_t site)
{
	uint64_t units = (size + UINT16_MAX) >> 16;

	if (index->n == BLOCKS_MAX || address >> ADDRESS_BITS)
		return;
	index->blocks = torsh_array_reserve(index->blocks, index->n, &index->capacity,
					    sizeof(*index->blocks));
	index->blocks[index->n++] = (struct indexed_block){
		.address = address,
		.size = size <= INT32_MAX
				? (uint32_t)size + !size
				: (uint32_t)(units < INT32_MAX ? units : INT32_MAX) | 1u << 31,
		.site = site,
	};
}

static uint64_t end_of(const struct indexed_block *block)
{
	return block->address + torsh_block_size(block);
}

/* ---- order ----------------------------------------------------------------------------------- */

static bool is_before(const struct indexed_block *a, const struct indexed_block *b)
{
	return a->address != b->address ? a->address < b->address : a->site < b->site;
}

static void sort_few(struct indexed_block *blocks, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		struct indexed_block block = blocks[i];
		uint32_t at = i;

		for (; at && is_before(&block, &blocks[at - 1]); at--)
			blocks[at] = blocks[at - 1];
		blocks[at] = block;
	}
}

/* Returns a byte of the address, from the highest on, then of the site. */
static uint32_t digit_of(const struct indexed_block *block, unsigned level)
{
	uint64_t number = level < ADDRESS_DIGITS ? block->address : block->site;
	unsigned last = level < ADDRESS_DIGITS ? ADDRESS_DIGITS - 1 : N_LEVELS - 1;

	return (uint32_t)(number >> DIGIT_BITS * (last - level)) % N_DIGITS;
}

/* Move the blocks to the order of one digit: those of d begin at nexts[d] and end at ends[d]. */
static void move_by_digit(struct indexed_block *blocks, unsigned level, uint32_t *nexts,
			  const uint32_t *ends)
{
	for (uint32_t digit = 0; digit < N_DIGITS; digit++) {
		while (nexts[digit] < ends[digit]) {
			struct indexed_block block = blocks[nexts[digit]];
			uint32_t other;

			while ((other = digit_of(&block, level)) != digit) {
				struct indexed_block there = blocks[nexts[other]];

				blocks[nexts[other]++] = block;
				block = there;
			}
			blocks[nexts[digit]++] = block;
		}
	}
}

/*
 * By radix: tens of millions of blocks would take seconds by comparison. In place: a second array
 * of them would be as large as all else that they are looked up with.
 */
static void sort_from(struct indexed_block *blocks, uint32_t n, unsigned level)
{
	uint32_t nexts[N_DIGITS] = {0}, ends[N_DIGITS], n_before = 0;

	if (n <= FEW || level == N_LEVELS) {
		sort_few(blocks, level == N_LEVELS ? 0 : n);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		nexts[digit_of(&blocks[i], level)]++;
	for (uint32_t digit = 0; digit < N_DIGITS; digit++) {
		n_before += nexts[digit];
		ends[digit] = n_before;
		nexts[digit] = n_before - nexts[digit];
	}
	move_by_digit(blocks, level, nexts, ends);
	for (uint32_t digit = 0, begin = 0; digit < N_DIGITS; begin = ends[digit++])
		sort_from(blocks + begin, ends[digit] - begin, level + 1);
}

void torsh_block_index_sort(struct block_index *index)
{
	sort_from(index->blocks, index->n, 0);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static struct block_gigabyte *gigabyte_of(struct block_index *index, uint64_t megabyte)
{
	uint32_t number = (uint32_t)(megabyte / BLOCK_INDEX_MEGABYTES);
	struct block_gigabyte **gigabyte = &index->gigabytes[number];

	if (!*gigabyte) {
		*gigabyte = torsh_memory_new(1, sizeof(**gigabyte));
		index->used = torsh_array_reserve(index->used, index->n_used, &index->used_capacity,
						  sizeof(*index->used));
		index->used[index->n_used++] = number;
	}
	return *gigabyte;
}

/* Returns the entries of the parts of a megabyte. */
static uint32_t *parts_of(struct block_gigabyte *gigabyte, uint32_t megabyte)
{
	uint32_t **parts = &gigabyte->parts[megabyte];

	if (!*parts) {
		*parts = torsh_memory_new(N_PARTS, sizeof(**parts));
		for (uint32_t i = 0; gigabyte->whole[megabyte] && i < N_PARTS; i++)
			(*parts)[i] = gigabyte->whole[megabyte];
	}
	return *parts;
}

/* Enter the block for the parts from first to last, which are in one megabyte. */
static void enter_parts(struct block_index *index, uint32_t i, uint64_t first, uint64_t last)
{
	struct block_gigabyte *gigabyte = gigabyte_of(index, first / N_PARTS);
	uint32_t megabyte = (uint32_t)(first / N_PARTS % BLOCK_INDEX_MEGABYTES), *parts;

	/* The inner megabytes of a large block need no parts. */
	if (last - first == N_PARTS - 1 && !gigabyte->parts[megabyte]) {
		if (!gigabyte->whole[megabyte])
			gigabyte->whole[megabyte] = i + 1;
		return;
	}
	parts = parts_of(gigabyte, megabyte);
	for (uint64_t part = first; part <= last; part++) {
		uint32_t *entry = &parts[part % N_PARTS];

		*entry = *entry ? *entry : i + 1;
	}
}

/* Enter the block for the parts that no block before it covers. */
static void enter(struct block_index *index, uint32_t i)
{
	uint64_t first = index->blocks[i].address >> PART_BITS;
	uint64_t last = (end_of(&index->blocks[i]) - 1) >> PART_BITS;
	uint64_t limit = UINT64_C(1) << (ADDRESS_BITS - PART_BITS);

	while (first <= last && first < limit) {
		uint64_t last_here = first | (N_PARTS - 1);

		enter_parts(index, i, first, last_here < last ? last_here : last);
		first = last_here + 1;
	}
}

/* The blocks are in order. */
static void enter_all(struct block_index *index)
{
	index->gigabytes = torsh_memory_new(N_GIGABYTES, sizeof(*index->gigabytes));
	for (uint32_t i = 0; i < index->n; i++)
		enter(index, i);
	if (!index->n)
		return;
	index->begin = index->blocks[0].address;
	for (uint32_t i = 0; i < index->n; i++)
		index->end = end_of(&index->blocks[i]) > index->end ? end_of(&index->blocks[i])
								    : index->end;
}

void torsh_block_index_end(struct block_index *index)
{
	torsh_block_index_sort(index);
	enter_all(index);
}

static void free_parts(struct block_index *index)
{
	for (uint32_t i = 0; i < index->n_used; i++) {
		struct block_gigabyte *gigabyte = index->gigabytes[index->used[i]];

		for (uint32_t k = 0; k < BLOCK_INDEX_MEGABYTES; k++)
			free(gigabyte->parts[k]);
		free(gigabyte);
	}
	free(index->gigabytes);
	free(index->used);
	index->gigabytes = NULL;
	index->used = NULL;
	index->n_used = 0;
	index->used_capacity = 0;
}

void torsh_block_index_drop_python(struct block_index *index, uint8_t *of)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < index->n; i++) {
		if (torsh_block_is_python(&index->blocks[i]))
			continue;
		of[n] = of[i];
		index->blocks[n++] = index->blocks[i];
	}
	if (n == index->n)
		return;
	index->n = n;
	index->capacity = (size_t)n + 1;
	index->blocks = torsh_memory_or_die(
		realloc(index->blocks, index->capacity * sizeof(*index->blocks)));
	free_parts(index);
	enter_all(index);
}

void torsh_block_index_destroy(struct block_index *index)
{
	free_parts(index);
	free(index->blocks);
	*index = (struct block_index){.begin = UINT64_MAX};
}

/* The entry of the address's part, or NULL. */
static const uint32_t *entry_of(const struct block_index *index, uint64_t address)
{
	const struct block_gigabyte *gigabyte;
	uint32_t megabyte = (uint32_t)(address >> MEGABYTE_BITS) % BLOCK_INDEX_MEGABYTES;

	if (address < index->begin || address >= index->end)
		return NULL;
	gigabyte = index->gigabytes[address >> GIGABYTE_BITS];
	if (!gigabyte)
		return NULL;
	return gigabyte->parts[megabyte]
		       ? &gigabyte->parts[megabyte][address >> PART_BITS & (N_PARTS - 1)]
		       : &gigabyte->whole[megabyte];
}

static uint32_t find_at(const struct block_index *index, const uint32_t *entry, uint64_t address)
{
	const struct indexed_block *blocks = index->blocks;
	uint32_t i = *entry ? *entry - 1 : index->n;

	for (; i < index->n && blocks[i].address <= address; i++) {
		if (address < end_of(&blocks[i]))
			return i;
	}
	return NO_BLOCK;
}

uint32_t torsh_block_index_find(const struct block_index *index, uint64_t address)
{
	const uint32_t *entry = entry_of(index, address);

	return entry ? find_at(index, entry, address) : NO_BLOCK;
}

void torsh_block_index_find_many(const struct block_index *index, const uint64_t *addresses,
				 size_t n, uint32_t *blocks)
{
	const uint32_t *entries[BLOCK_INDEX_MANY];

	for (size_t i = 0; i < n; i++) {
		entries[i] = entry_of(index, addresses[i]);
		__builtin_prefetch(entries[i]);
	}
	for (size_t i = 0; i < n; i++) {
		if (entries[i] && *entries[i])
			__builtin_prefetch(&index->blocks[*entries[i] - 1]);
	}
	for (size_t i = 0; i < n; i++)
		blocks[i] = entries[i] ? find_at(index, entries[i], addresses[i]) : NO_BLOCK;
}

uint32_t torsh_block_index_from(const struct block_index *index, uint64_t address)
{
	uint32_t from = 0, to = index->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (end_of(&index->blocks[middle]) <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}
