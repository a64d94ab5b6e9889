/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Moments (tools/writer/fold/heap_moments.h), those that are new since the last checkpoint. */
#include <stdbool.h>

#include "tools/writer/output/rows/rows_parts.h"

/* What of the moments comes next. */
struct moments_place {
	uint32_t moment, site; /* of items, and of the list of that one */
};

static uint32_t name_of(const struct target *target, const struct moment *moment)
{
	bool is_by_optimizer = target->state.steps.source == STEP_BY_OPTIMIZER;

	return moment->kind == MOMENT_BY_STEP
		       ? torsh_step_marks_final(moment->name, is_by_optimizer)
		       : moment->name;
}

/* The number of moments, or pieces of one, and of their sites that fit into a message. */
static uint32_t count_pieces(const struct moments *moments, struct moments_place from,
			     uint32_t *n_sites)
{
	uint32_t n = 0;

	*n_sites = 0;
	for (; from.moment < moments->n && *n_sites < ROWS_TOTALS; from.moment++, from.site = 0) {
		const struct moment *moment = &moments->items[from.moment];
		uint32_t n_left = moment->sites.n - from.site;

		if (!moment->is_changed)
			continue;
		*n_sites += n_left < ROWS_TOTALS - *n_sites ? n_left : ROWS_TOTALS - *n_sites;
		n++;
	}
	return n;
}

static void make_columns(Torsh__Moments *row, struct rows_memory *memory, uint32_t n,
			 uint32_t n_sites)
{
	ROWS_COLUMN(memory, row, number, n);
	ROWS_COLUMN(memory, row, piece, n);
	ROWS_COLUMN(memory, row, at_ns, n);
	ROWS_COLUMN(memory, row, kind, n);
	ROWS_COLUMN(memory, row, name, n);
	ROWS_COLUMN(memory, row, bytes, n);
	ROWS_COLUMN(memory, row, blocks, n);
	ROWS_COLUMN(memory, row, n_stacks, n);
	ROWS_COLUMN(memory, row, n_steps, n);
	ROWS_COLUMN(memory, row, resident_bytes, n);
	ROWS_COLUMN(memory, row, highest_bytes, n);
	ROWS_COLUMN(memory, row, highest_ns, n);
	ROWS_COLUMN(memory, row, stack, n_sites);
	ROWS_COLUMN(memory, row, stack_bytes, n_sites);
	ROWS_COLUMN(memory, row, stack_blocks, n_sites);
}

static void put_moment(Torsh__Moments *row, uint32_t i, const struct target *target,
		       const struct moment *moment)
{
	row->number[i] = moment->number;
	row->at_ns[i] = torsh_clock_to_ns(&target->state.clock, moment->stamp);
	row->kind[i] = moment->kind == MOMENT_BY_RESIDENT ? MOMENT_BY_TIME : moment->kind;
	row->name[i] = name_of(target, moment);
	row->bytes[i] = moment->bytes;
	row->blocks[i] = moment->n;
	row->n_steps[i] = moment->n_steps;
	row->resident_bytes[i] = moment->resident_bytes;
	row->highest_bytes[i] = moment->highest_bytes;
	row->highest_ns[i] = torsh_clock_to_ns(&target->state.clock, moment->highest_stamp);
}

static uint32_t put_sites(Torsh__Moments *row, uint32_t at, const struct heap *heap,
			  const struct moment *moment, uint32_t *site)
{
	struct moment_sites_reader reader = torsh_moment_sites_read(&moment->sites);
	struct moment_site usage;

	for (uint32_t i = 0; i < *site; i++)
		torsh_moment_sites_next(&reader, &usage);
	for (; at < row->n_stack && torsh_moment_sites_next(&reader, &usage); ++*site, at++) {
		row->stack[at] = heap->sites[usage.site].stack;
		row->stack_bytes[at] = usage.bytes;
		row->stack_blocks[at] = usage.n;
	}
	return at;
}

bool torsh_rows_put_moments(Torsh__Moments *row, struct rows_memory *memory,
			    const struct target *target, uint64_t *next)
{
	const struct heap *heap = &target->state.heap;
	const struct moments *moments = &heap->moments;
	struct moments_place place = {.moment = (uint32_t)(*next >> 32), .site = (uint32_t)*next};
	uint32_t n_sites, n = count_pieces(moments, place, &n_sites), at = 0;

	ROWS_SET(row, process, target->number);
	make_columns(row, memory, n, n_sites);
	for (uint32_t i = 0; i < n; place.moment++) {
		const struct moment *moment = &moments->items[place.moment];
		uint32_t first = place.site;

		if (!moment->is_changed)
			continue;
		put_moment(row, i, target, moment);
		row->piece[i] = first != 0;
		at = put_sites(row, at, heap, moment, &place.site);
		row->n_stacks[i++] = place.site - first;
		if (place.site < moment->sites.n)
			break;
		place.site = 0;
	}
	*next = (uint64_t)place.moment << 32 | place.site;
	return n != 0;
}
