/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/delta.h"

/*
 * Copy the pointer and length of a column between two fields of a row that have types of the same
 * size.
 */
#define MOVE_COLUMN(row, from, to)                                                      \
	do {                                                                            \
		_Static_assert(sizeof(*(row)->from) == sizeof(*(row)->to), "one size"); \
		(row)->to = (void *)(row)->from;                                        \
		(row)->n_##to = (row)->n_##from;                                        \
		(row)->from = NULL;                                                     \
		(row)->n_##from = 0;                                                    \
	} while (0)

static void encode_32(int32_t *values, size_t n)
{
	for (size_t i = n; i-- > 1;)
		values[i] = (int32_t)((uint32_t)values[i] - (uint32_t)values[i - 1]);
}

static void decode_32(uint32_t *values, size_t n)
{
	for (size_t i = 1; i < n; i++)
		values[i] += values[i - 1];
}

static void encode_64(int64_t *values, size_t n)
{
	for (size_t i = n; i-- > 1;)
		values[i] = (int64_t)((uint64_t)values[i] - (uint64_t)values[i - 1]);
}

static void decode_64(uint64_t *values, size_t n)
{
	for (size_t i = 1; i < n; i++)
		values[i] += values[i - 1];
}

/* Encode a column with rows that differ little from the previous ones. */
#define ENCODE(row, plain, step, bits)                               \
	do {                                                         \
		if ((row)->n_##plain) {                              \
			MOVE_COLUMN(row, plain, step);               \
			encode_##bits((row)->step, (row)->n_##step); \
		}                                                    \
	} while (0)
#define DECODE(row, plain, step, bits)                                 \
	do {                                                           \
		if ((row)->n_##step && !(row)->n_##plain) {            \
			MOVE_COLUMN(row, step, plain);                 \
			decode_##bits((row)->plain, (row)->n_##plain); \
		}                                                      \
	} while (0)

/* Replace a parent's number by its distance from the stack's own number, or the reverse. */
static void mirror_parents(const Torsh__Stacks *row, uint32_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		values[i] = row->first + (uint32_t)i - values[i];
}

static void encode_stacks(Torsh__Stacks *row)
{
	if (!row->n_parent)
		return;
	MOVE_COLUMN(row, parent, parent_back);
	mirror_parents(row, row->parent_back, row->n_parent_back);
}

static void decode_stacks(Torsh__Stacks *row)
{
	if (!row->n_parent_back || row->n_parent)
		return;
	MOVE_COLUMN(row, parent_back, parent);
	mirror_parents(row, row->parent, row->n_parent);
}

static void encode_live(Torsh__Live *row)
{
	if (row->n_last_ns && row->n_last_ns == row->n_first_ns) {
		MOVE_COLUMN(row, last_ns, last_after_ns);
		for (size_t i = 0; i < row->n_last_after_ns; i++)
			row->last_after_ns[i] -= row->first_ns[i];
	}
	ENCODE(row, stack, stack_step, 32);
	ENCODE(row, first_ns, first_step_ns, 64);
}

static void decode_live(Torsh__Live *row)
{
	DECODE(row, stack, stack_step, 32);
	DECODE(row, first_ns, first_step_ns, 64);
	if (row->n_last_after_ns && !row->n_last_ns && row->n_last_after_ns == row->n_first_ns) {
		MOVE_COLUMN(row, last_after_ns, last_ns);
		for (size_t i = 0; i < row->n_last_ns; i++)
			row->last_ns[i] += row->first_ns[i];
	}
}

/* COLUMN(table, plain, step, bits): columns that are encoded separately */
#define COLUMNS                                     \
	COLUMN(addresses, ip, ip_step, 64)          \
	COLUMN(symbols, address, address_step, 32)  \
	COLUMN(stack_totals, stack, stack_step, 32) \
	COLUMN(moments, stack, stack_step, 32)      \
	COLUMN(threads, number, number_step, 32)

void torsh_delta_encode(Torsh__Chunk *chunk)
{
#define COLUMN(table, plain, step, bits)              \
	for (size_t i = 0; i < chunk->n_##table; i++) \
		ENCODE(chunk->table[i], plain, step, bits);
	COLUMNS
#undef COLUMN
	for (size_t i = 0; i < chunk->n_stacks; i++)
		encode_stacks(chunk->stacks[i]);
	for (size_t i = 0; i < chunk->n_live; i++)
		encode_live(chunk->live[i]);
}

void torsh_delta_decode(Torsh__Chunk *chunk)
{
#define COLUMN(table, plain, step, bits)              \
	for (size_t i = 0; i < chunk->n_##table; i++) \
		DECODE(chunk->table[i], plain, step, bits);
	COLUMNS
#undef COLUMN
	for (size_t i = 0; i < chunk->n_stacks; i++)
		decode_stacks(chunk->stacks[i]);
	for (size_t i = 0; i < chunk->n_live; i++)
		decode_live(chunk->live[i]);
}

#undef COLUMNS
