/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/memory/allocation_sites.h. */
#include "tools/memory/allocation_sites.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/memory/arena.h"

void torsh_holders_put(struct holders *holders, const struct holder *holder)
{
	if (!holder->blocks && !holder->bytes)
		return;
	holders->items = torsh_need_room(holders->items, holders->n, &holders->n_room, sizeof(*holders->items));
	holders->items[holders->n++] = *holder;
}

void torsh_holders_add(struct holders *holders, const struct holder *holder)
{
	const struct profile_total *total =
		torsh_profile_row(&holder->process->totals, holder->stack, sizeof(*total));
	struct holder scoped = *holder;

	scoped.operator = total ? total->operator : 0;
	scoped.module = total ? total->module : 0;
	torsh_holders_put(holders, &scoped);
}

static const char *name_of(const struct profile_process *process, uint32_t label)
{
	return label && label <= process->n_functions ? process->functions[label - 1].name : NULL;
}

const char *torsh_holder_operator(const struct holder *holder)
{
	return name_of(holder->process, holder->operator);
}

const char *torsh_holder_module(const struct holder *holder)
{
	return name_of(holder->process, holder->module);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* base + delta, which can't fall below 0 unless the recording is damaged. */
static uint64_t share(uint64_t base, int64_t delta)
{
	uint64_t sum = base + (uint64_t)delta;

	return (int64_t)sum < 0 ? 0 : sum;
}

static void collect_live(struct holders *holders, const struct profile_process *process)
{
	const struct profile_live *live = process->live.items;

	for (size_t i = 0; i < process->live.n; i++) {
		torsh_holders_add(holders, &(struct holder){
					    .process = process,
					    .stack = live[i].stack,
					    .blocks = less(live[i].blocks, live[i].inherited_blocks),
					    .bytes = less(live[i].bytes, live[i].inherited_bytes),
					    .usable_bytes = live[i].usable_bytes,
					    .usable_is_known = process->usable_is_known && !live[i].inherited_blocks,
					    .first_ns = live[i].first_ns,
					    .last_ns = live[i].last_ns,
					    .has_times = true,
					    .first_step = live[i].first_step,
					    .last_step = live[i].last_step,
				    });
	}
}

/* is_live: what is there now. Otherwise: what was there at the peak. */
static void collect_shares(struct holders *holders, const struct profile_process *process, bool is_live)
{
	const struct profile_total *total = process->totals.items;

	for (size_t i = 0; i < process->totals.n; i++) {
		bool is_moved = is_live || total[i].seen != process->heap.peak_number;

		torsh_holders_add(holders, &(struct holder){
					    .process = process,
					    .stack = total[i].stack,
					    .first_step = is_moved ? total[i].first_step : total[i].base_first_step,
					    .last_step = is_moved ? total[i].last_step : total[i].base_last_step,
					    .blocks = share(total[i].base_blocks, is_moved ? total[i].delta_blocks : 0),
					    .bytes = share(total[i].base_bytes, is_moved ? total[i].delta_bytes : 0),
				    });
	}
}

static void collect_joint(struct holders *holders, const struct profile_process *process)
{
	const struct profile_joint_share *share = process->joint_shares.items;

	for (size_t i = 0; i < process->joint_shares.n; i++) {
		torsh_holders_add(holders, &(struct holder){
					    .process = process,
					    .stack = share[i].stack,
					    .blocks = share[i].blocks,
					    .bytes = share[i].bytes,
					    .first_step = share[i].first_step,
					    .last_step = share[i].last_step,
				    });
	}
}

static void collect_totals(struct holders *holders, const struct profile_process *process, bool is_temporary)
{
	const struct profile_total *total = process->totals.items;

	for (size_t i = 0; i < process->totals.n; i++) {
		torsh_holders_add(holders, &(struct holder){
					    .process = process,
					    .stack = total[i].stack,
					    .blocks = is_temporary ? total[i].temporary : total[i].allocs,
					    .bytes = is_temporary ? total[i].temporary_bytes : total[i].alloc_bytes,
				    });
	}
}

static void collect_mapped(struct holders *holders, const struct profile_process *process)
{
	const struct profile_mapping *mapping = process->mappings.items;

	for (size_t i = 0; i < process->mappings.n; i++) {
		bool is_moved = mapping[i].seen != process->vm.peak_number;
		int64_t pieces = mapping[i].base_pieces + (is_moved ? mapping[i].delta_pieces : 0);
		int64_t bytes = mapping[i].base_bytes + (is_moved ? mapping[i].delta_bytes : 0);

		torsh_holders_add(holders, &(struct holder){
					    .process = process,
					    .stack = mapping[i].stack,
					    .blocks = pieces > 0 ? (uint64_t)pieces : 0,
					    .bytes = bytes > 0 ? (uint64_t)bytes : 0,
				    });
	}
}

void torsh_holders_collect(struct holders *holders, const struct profile_process *process, enum holders_of what)
{
	switch (what) {
	case HOLDERS_LIVE:
		if (process->has_live)
			collect_live(holders, process);
		else
			collect_shares(holders, process, true);
		break;
	case HOLDERS_PEAK:
		collect_shares(holders, process, false);
		break;
	case HOLDERS_JOINT_PEAK:
		collect_joint(holders, process);
		break;
	case HOLDERS_ALLOCATED:
		collect_totals(holders, process, false);
		break;
	case HOLDERS_TEMPORARY:
		collect_totals(holders, process, true);
		break;
	case HOLDERS_MAPPED:
		collect_mapped(holders, process);
		break;
	}
}

static void merge_into(struct holder *to, const struct holder *from)
{
	to->blocks += from->blocks;
	to->bytes += from->bytes;
	to->usable_bytes += from->usable_bytes;
	to->is_of_tensors = to->is_of_tensors || from->is_of_tensors;
	if (to->operator != from->operator)
		to->operator = PROFILE_SEVERAL;
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

/*
 * Merge equal ones, as compare says, into the first of them. Keeps the order. The tree holds pointers to holders that
 * stay where they are: items only move down, to places before them.
 */
static void merge_equal(struct holders *holders, size_t n_first, int (*compare)(const void *, const void *))
{
	struct holder *all = torsh_need_items(NULL, 0, holders->n, sizeof(*all));
	size_t n = 0;
	void *tree = NULL;

	if (n_first > holders->n)
		n_first = holders->n;
	for (size_t i = 0; i < holders->n; i++) {
		struct holder **found;

		all[n] = holders->items[i];
		if (i >= n_first) {
			n++;
			continue;
		}
		found = torsh_need(tsearch(&all[n], &tree, compare));
		if (*found == &all[n]) {
			n++;
			continue;
		}
		merge_into(*found, &all[n]);
		free(all[n].frames);
	}
	while (tree) {
		struct holder *root = *(struct holder **)tree;

		tdelete(root, &tree, compare);
	}
	free(holders->items);
	holders->items = all;
	holders->n_room = holders->n;
	holders->n = n;
}

void torsh_holders_mark_arenas(struct holders *holders, struct symbols *symbols)
{
	for (size_t i = 0; i < holders->n; i++) {
		struct holder *holder = &holders->items[i];

		holder->is_arena = torsh_arena_is(symbols, holder->process, holder->stack);
	}
}

/* By what is never merged, whatever the stacks. */
static int compare_kinds(const struct holder *a, const struct holder *b)
{
	if (a->process != b->process)
		return a->process->number < b->process->number ? -1 : 1;
	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	return (int)a->is_arena - (int)b->is_arena;
}

static _Thread_local size_t compared_depth;

static int compare_stacks(const void *a, const void *b)
{
	const struct holder *one = a, *other = b;
	const struct profile_process *process = one->process;
	uint32_t x = one->stack, y = other->stack;
	int rc = compare_kinds(one, other);

	if (rc)
		return rc;
	for (size_t i = 0; i < compared_depth && x != y; i++) {
		const struct profile_stack *node_x, *node_y;

		if (x >= process->n_stacks)
			x = 0;
		if (y >= process->n_stacks)
			y = 0;
		if (!x || !y)
			return !x ? -(y != 0) : 1;
		node_x = &process->stacks[x];
		node_y = &process->stacks[y];
		if (node_x->address != node_y->address)
			return node_x->address < node_y->address ? -1 : 1;
		x = node_x->parent;
		y = node_y->parent;
	}
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	const struct holder *one = a, *other = b;
	int rc = compare_kinds(one, other);

	if (rc)
		return rc;
	return one->stack < other->stack ? -1 : one->stack > other->stack;
}

void torsh_holders_merge_stacks(struct holders *holders, struct symbols *symbols)
{
	bool is_changed = false;

	for (size_t i = 0; i < holders->n; i++) {
		struct holder *holder = &holders->items[i];
		/* Its table of stacks grows; what was there stays. */
		uint32_t shown = torsh_stack_view((struct profile_process *)holder->process, holder->stack, symbols,
						  holders->view);

		is_changed |= shown != holder->stack;
		holder->stack = shown;
	}
	compared_depth = holders->depth;
	if (holders->depth || is_changed)
		merge_equal(holders, holders->n, holders->depth ? compare_stacks : compare_places);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_for(enum holders_order order, const struct holder *a, const struct holder *b)
{
	switch (order) {
	case ORDER_BYTES:
		return compare_numbers(b->bytes, a->bytes);
	case ORDER_BLOCKS:
		return compare_numbers(b->blocks, a->blocks);
	case ORDER_USABLE:
		return compare_numbers(b->usable_bytes, a->usable_bytes);
	case ORDER_FIRST:
		return compare_numbers(a->first_ns, b->first_ns);
	case ORDER_LAST:
		return compare_numbers(b->last_ns, a->last_ns);
	}
	return 0;
}

static int compare_holders(const void *a, const void *b, void *order)
{
	const struct holder *one = a, *other = b;
	int rc = compare_for(*(enum holders_order *)order, one, other);

	if (rc == 0)
		rc = compare_for(ORDER_BYTES, one, other);
	if (rc == 0)
		rc = compare_for(ORDER_BLOCKS, one, other);
	if (rc == 0)
		rc = compare_numbers(one->process->number, other->process->number);
	return rc ? rc : compare_numbers(one->stack, other->stack);
}

void torsh_holders_sort(struct holders *holders, enum holders_order order)
{
	if (holders->n)
		qsort_r(holders->items, holders->n, sizeof(*holders->items), compare_holders, &order);
}

size_t torsh_holders_put_large_first(struct holders *holders, uint64_t min_bytes)
{
	struct holder *all = torsh_need_items(NULL, 0, holders->n, sizeof(*all));
	size_t n = 0, n_large;

	for (size_t i = 0; i < holders->n; i++) {
		if (holders->items[i].bytes >= min_bytes)
			all[n++] = holders->items[i];
	}
	n_large = n;
	for (size_t i = 0; i < holders->n; i++) {
		if (holders->items[i].bytes < min_bytes)
			all[n++] = holders->items[i];
	}
	free(holders->items);
	holders->items = all;
	holders->n_room = n;
	return n_large;
}

/* Texts are interned: other pointers are other texts. */
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
	return compare_numbers(a->address, b->address);
}

static int compare_named(const void *a, const void *b)
{
	const struct holder *one = a, *other = b;
	int rc = compare_kinds(one, other);

	if (rc)
		return rc;
	if (one->n_frames != other->n_frames)
		return one->n_frames < other->n_frames ? -1 : 1;
	for (size_t i = 0; i < one->n_frames && !rc; i++)
		rc = compare_frame(one->frames[i], other->frames[i]);
	return rc;
}

static void name_holder(struct holder *holder, struct symbols *symbols, size_t depth)
{
	size_t n_room = 0;
	uint32_t stack = holder->stack;

	while (stack && stack < holder->process->n_stacks) {
		const struct profile_stack *node = &holder->process->stacks[stack];
		const struct frames *frames = torsh_symbols_frames(symbols, holder->process, node->address);

		for (size_t i = 0; i < frames->n; i++) {
			if (depth && holder->n_frames == depth)
				return;
			holder->frames =
				torsh_need_room(holder->frames, holder->n_frames, &n_room, sizeof(*holder->frames));
			holder->frames[holder->n_frames++] = &frames->frames[i];
		}
		stack = node->parent;
	}
}

void torsh_holders_name(struct holders *holders, struct symbols *symbols, size_t n_first)
{
	if (n_first > holders->n)
		n_first = holders->n;
	for (size_t i = 0; i < n_first; i++) {
		if (!holders->items[i].frames)
			name_holder(&holders->items[i], symbols, holders->depth);
	}
	merge_equal(holders, n_first, compare_named);
}

void torsh_holders_sum(const struct holders *holders, uint64_t *blocks, uint64_t *bytes)
{
	*blocks = 0;
	*bytes = 0;
	for (size_t i = 0; i < holders->n; i++) {
		*blocks += holders->items[i].blocks;
		*bytes += holders->items[i].bytes;
	}
}

void torsh_holders_free(struct holders *holders)
{
	for (size_t i = 0; i < holders->n; i++)
		free(holders->items[i].frames);
	free(holders->items);
	*holders = (struct holders){0};
}
