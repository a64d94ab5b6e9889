/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/heap.h"

#include <stdlib.h>

#include "tools/writer/joint.h"
#include "tools/writer/memory.h"

void torsh_heap_create(struct heap *heap, uint64_t first_stamp)
{
	*heap = (struct heap){.first_stamp = first_stamp, .n_sites = 1};
	heap->sites = torsh_memory_grow(NULL, &heap->site_capacity, 0, sizeof(*heap->sites));
	torsh_live_create(&heap->live);
}

void torsh_heap_destroy(struct heap *heap)
{
	torsh_live_destroy(&heap->live);
	free(heap->sites);
	free(heap->ended);
	*heap = (struct heap){0};
}

/* The empty stack's site is 0, which says "none yet" to torsh_heap_site: it comes here each time. */
uint32_t torsh_heap_add_site(struct heap *heap, struct stack_table *stacks, uint32_t stack)
{
	uint32_t site = heap->n_sites;

	if (!stack)
		return 0;
	heap->sites = torsh_memory_grow(heap->sites, &heap->site_capacity, site, sizeof(*heap->sites));
	heap->n_sites++;
	heap->sites[site].stack = stack;
	stacks->rows[stack].heap_site = site;
	return site;
}

static uint64_t relative_stamp(const struct heap *heap, uint64_t stamp)
{
	uint64_t relative = stamp > heap->first_stamp ? stamp - heap->first_stamp : 0;

	return relative < LIVE_STAMP_MAX ? relative : LIVE_STAMP_MAX;
}

static void count_usable(struct heap *heap, const struct live_block *block, int sign)
{
	uint64_t usable = torsh_live_usable(block);

	heap->usable_bytes += sign > 0 ? usable : 0 - usable;
	if (!usable)
		heap->n_usable_unknown += (uint64_t)(int64_t)sign;
}

static void change_site(struct heap *heap, uint32_t number, int64_t n, int64_t bytes)
{
	struct heap_site *site = &heap->sites[number];

	torsh_share_change(&site->live, &heap->axis, heap->step_name, n, bytes);
	site->is_changed = 1;
	if (__builtin_expect(heap->joint != NULL, 0))
		torsh_joint_note(heap->joint, heap->axis.last_stamp, number, n, bytes);
}

void torsh_heap_mark_step(struct heap *heap, uint64_t stamp)
{
	heap->step = relative_stamp(heap, stamp);
	if (!heap->first_step)
		heap->first_step = heap->step;
	heap->n_ended = 0;
}

void torsh_heap_name_step(struct heap *heap, uint64_t stamp, uint32_t name, int is_by_optimizer)
{
	heap->step_name = name;
	if (heap->joint)
		torsh_joint_name_step(heap->joint, stamp, name, is_by_optimizer);
}

static void keep_ended(struct heap *heap, const struct live_block *block)
{
	heap->ended = torsh_memory_grow(heap->ended, &heap->ended_capacity, heap->n_ended, sizeof(*heap->ended));
	heap->ended[heap->n_ended++] =
		(struct ended_block){.stamp = block->stamp, .size = block->size, .site = block->site};
}

/* The sum's side is its caller's. */
static void leave_site(struct heap *heap, const struct live_block *block)
{
	if (__builtin_expect(block->stamp < heap->step && block->stamp >= heap->first_step, 0))
		keep_ended(heap, block);
	change_site(heap, block->site, -1, -(int64_t)block->size);
	count_usable(heap, block, -1);
}

static void end_block(struct heap *heap, const struct live_block *block, uint64_t stamp)
{
	torsh_axis_change(&heap->axis, stamp, -1, -(int64_t)block->size);
	leave_site(heap, block);
}

static void end_unseen(struct heap *heap, const struct live_block *block, uint64_t stamp)
{
	end_block(heap, block, stamp);
	heap->implicit_frees++;
}

static void note_label(uint32_t *of_site, uint32_t label, int is_first)
{
	if (is_first)
		*of_site = label;
	else if (*of_site != label)
		*of_site = HEAP_SCOPES_DIFFER;
}

static void note_scope(struct heap_site *site, const struct scope *scope)
{
	static const struct scope none;

	if (!scope)
		scope = &none;
	note_label(&site->scope.operator, scope->operator, !site->allocs);
	note_label(&site->scope.module, scope->module, !site->allocs);
}

static void count_alloc(struct heap *heap, struct heap_flow *flow, const struct heap_alloc *alloc)
{
	struct heap_site *site = &heap->sites[alloc->site];

	heap->allocs++;
	heap->alloc_bytes += alloc->size;
	heap->size_blocks[alloc->size ? 64 - __builtin_clzll(alloc->size) : 0]++;
	flow->allocs++;
	flow->alloc_bytes += alloc->size;
	flow->last_alloc = alloc->address;
	note_scope(site, flow->scope);
	site->allocs++;
	site->alloc_bytes += alloc->size;
}

static void count_unknown(struct heap *heap)
{
	if (heap->was_paused)
		heap->pause_frees++;
	else
		heap->unknown_frees++;
}

void torsh_heap_end_unknown(struct heap *heap, struct heap_flow *flow)
{
	if (!flow->is_reallocating_unknown)
		return;
	flow->is_reallocating_unknown = 0;
	count_unknown(heap);
}

void torsh_heap_alloc(struct heap *heap, struct heap_flow *flow, const struct heap_alloc *alloc)
{
	int is_there, is_move = alloc->is_realloc && flow->is_reallocating;
	struct live_block *block = torsh_live_add(&heap->live, alloc->address, &is_there);

	if (__builtin_expect(is_there, 0))
		end_unseen(heap, block, alloc->stamp);
	block->size = alloc->size;
	block->flow = (uint16_t)flow->number;
	block->stamp = relative_stamp(heap, alloc->stamp);
	block->site = alloc->site;
	torsh_live_set_usable(block, alloc->usable);
	count_usable(heap, block, 1);
	if (is_move) {
		torsh_axis_change(&heap->axis, alloc->stamp, 0, (int64_t)(alloc->size - flow->old.size));
		leave_site(heap, &flow->old);
		flow->is_reallocating = 0;
		flow->frees++;
		heap->frees++;
		heap->reallocs++;
	} else {
		torsh_axis_change(&heap->axis, alloc->stamp, 1, (int64_t)alloc->size);
		if (alloc->is_realloc)
			torsh_heap_end_unknown(heap, flow);
	}
	change_site(heap, alloc->site, 1, (int64_t)alloc->size);
	count_alloc(heap, flow, alloc);
}

void torsh_heap_forget(struct heap *heap, uint64_t stamp, uint64_t address)
{
	struct live_block *block = torsh_live_find(&heap->live, address);

	if (!block)
		return;
	end_unseen(heap, block, stamp);
	torsh_live_remove(&heap->live, block);
}

void torsh_heap_ignore(struct heap *heap, struct stack_table *stacks, uint64_t stamp, uint64_t address, uint32_t stack)
{
	struct live_block *block = torsh_live_find(&heap->live, address);
	uint32_t from, to;

	if (!block || !stack)
		return;
	from = block->site;
	to = torsh_heap_site(heap, stacks,
			     torsh_stacks_below(stacks, heap->sites[from].stack, stacks->rows[stack].address));
	torsh_axis_change(&heap->axis, stamp, 0, 0);
	change_site(heap, from, -1, -(int64_t)block->size);
	block->site = to;
	change_site(heap, to, 1, (int64_t)block->size);
}

void torsh_heap_free(struct heap *heap, struct heap_flow *flow, uint64_t stamp, uint64_t address)
{
	struct live_block *block = torsh_live_find(&heap->live, address);

	flow->frees++;
	if (__builtin_expect(!block, 0)) {
		count_unknown(heap);
		return;
	}
	heap->frees++;
	if (flow->last_alloc == address && block->flow == flow->number) {
		struct heap_site *site = &heap->sites[block->site];

		heap->temporary++;
		site->temporary++;
		site->temporary_bytes += block->size;
		flow->last_alloc = 0;
	}
	end_block(heap, block, stamp);
	torsh_live_remove(&heap->live, block);
}

void torsh_heap_realloc_begin(struct heap *heap, struct heap_flow *flow, uint64_t stamp, uint64_t address)
{
	struct live_block *block;

	if (flow->is_reallocating)
		torsh_heap_realloc_failed(heap, flow, stamp);
	block = torsh_live_find(&heap->live, address);
	flow->is_reallocating_unknown = !block;
	if (!block)
		return;
	flow->old = *block;
	flow->is_reallocating = 1;
	torsh_live_remove(&heap->live, block);
}

void torsh_heap_realloc_failed(struct heap *heap, struct heap_flow *flow, uint64_t stamp)
{
	struct live_block *block;
	int is_there;

	flow->is_reallocating_unknown = 0;
	if (!flow->is_reallocating)
		return;
	flow->is_reallocating = 0;
	block = torsh_live_add(&heap->live, flow->old.address, &is_there);
	if (is_there)
		end_unseen(heap, &flow->old, stamp);
	else
		torsh_live_copy(block, &flow->old);
}
