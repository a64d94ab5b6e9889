/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/delta.h"

/* One column's memory changes hands between two fields of a row, whose types have the same size. */
#define HAND_OVER(row, from, to)                                                        \
	do {                                                                            \
		_Static_assert(sizeof(*(row)->from) == sizeof(*(row)->to), "one size"); \
		(row)->to = (void *)(row)->from;                                        \
		(row)->n_##to = (row)->n_##from;                                        \
		(row)->from = NULL;                                                     \
		(row)->n_##from = 0;                                                    \
	} while (0)

static void take_32(int32_t *values, size_t n)
{
	for (size_t i = n; i-- > 1;)
		values[i] = (int32_t)((uint32_t)values[i] - (uint32_t)values[i - 1]);
}

static void sum_32(uint32_t *values, size_t n)
{
	for (size_t i = 1; i < n; i++)
		values[i] += values[i - 1];
}

static void take_64(int64_t *values, size_t n)
{
	for (size_t i = n; i-- > 1;)
		values[i] = (int64_t)((uint64_t)values[i] - (uint64_t)values[i - 1]);
}

static void sum_64(uint64_t *values, size_t n)
{
	for (size_t i = 1; i < n; i++)
		values[i] += values[i - 1];
}

/* A column whose rows differ little from the rows before them. */
#define TAKE(row, plain, step, bits)                               \
	do {                                                       \
		if ((row)->n_##plain) {                            \
			HAND_OVER(row, plain, step);               \
			take_##bits((row)->step, (row)->n_##step); \
		}                                                  \
	} while (0)
#define SUM(row, plain, step, bits)                                 \
	do {                                                        \
		if ((row)->n_##step && !(row)->n_##plain) {         \
			HAND_OVER(row, step, plain);                \
			sum_##bits((row)->plain, (row)->n_##plain); \
		}                                                   \
	} while (0)

/* Its own inverse: the parent's number is as far below the stack's own as that says. */
static void mirror_parents(const Torsh__Stacks *row, uint32_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		values[i] = row->first + (uint32_t)i - values[i];
}

static void take_stacks(Torsh__Stacks *row)
{
	if (!row->n_parent)
		return;
	HAND_OVER(row, parent, parent_back);
	mirror_parents(row, row->parent_back, row->n_parent_back);
}

static void sum_stacks(Torsh__Stacks *row)
{
	if (!row->n_parent_back || row->n_parent)
		return;
	HAND_OVER(row, parent_back, parent);
	mirror_parents(row, row->parent, row->n_parent);
}

static void take_live(Torsh__Live *row)
{
	if (row->n_last_ns && row->n_last_ns == row->n_first_ns) {
		HAND_OVER(row, last_ns, last_after_ns);
		for (size_t i = 0; i < row->n_last_after_ns; i++)
			row->last_after_ns[i] -= row->first_ns[i];
	}
	TAKE(row, stack, stack_step, 32);
	TAKE(row, first_ns, first_step_ns, 64);
}

static void sum_live(Torsh__Live *row)
{
	SUM(row, stack, stack_step, 32);
	SUM(row, first_ns, first_step_ns, 64);
	if (row->n_last_after_ns && !row->n_last_ns && row->n_last_after_ns == row->n_first_ns) {
		HAND_OVER(row, last_after_ns, last_ns);
		for (size_t i = 0; i < row->n_last_ns; i++)
			row->last_ns[i] += row->first_ns[i];
	}
}

void torsh_steps_take(Torsh__Chunk *chunk)
{
	for (size_t i = 0; i < chunk->n_addresses; i++)
		TAKE(chunk->addresses[i], ip, ip_step, 64);
	for (size_t i = 0; i < chunk->n_symbols; i++)
		TAKE(chunk->symbols[i], address, address_step, 32);
	for (size_t i = 0; i < chunk->n_stacks; i++)
		take_stacks(chunk->stacks[i]);
	for (size_t i = 0; i < chunk->n_stack_totals; i++)
		TAKE(chunk->stack_totals[i], stack, stack_step, 32);
	for (size_t i = 0; i < chunk->n_live; i++)
		take_live(chunk->live[i]);
	for (size_t i = 0; i < chunk->n_threads; i++)
		TAKE(chunk->threads[i], number, number_step, 32);
}

void torsh_steps_sum(Torsh__Chunk *chunk)
{
	for (size_t i = 0; i < chunk->n_addresses; i++)
		SUM(chunk->addresses[i], ip, ip_step, 64);
	for (size_t i = 0; i < chunk->n_symbols; i++)
		SUM(chunk->symbols[i], address, address_step, 32);
	for (size_t i = 0; i < chunk->n_stacks; i++)
		sum_stacks(chunk->stacks[i]);
	for (size_t i = 0; i < chunk->n_stack_totals; i++)
		SUM(chunk->stack_totals[i], stack, stack_step, 32);
	for (size_t i = 0; i < chunk->n_live; i++)
		sum_live(chunk->live[i]);
	for (size_t i = 0; i < chunk->n_threads; i++)
		SUM(chunk->threads[i], number, number_step, 32);
}
