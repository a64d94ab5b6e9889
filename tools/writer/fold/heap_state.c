/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/heap_state.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/fold/session_heap.h"

#define MOVES_LEAST 65536u /* blocks */
#define STAMP_UNKNOWN LIVE_STAMP_MAX /* only for small blocks, which are not in a live table */

void torsh_heap_create(struct heap *heap, uint64_t first_stamp)
{
	*heap = (struct heap){.first_stamp = first_stamp, .n_sites = 1};
	heap->sites = torsh_array_reserve(NULL, 0, &heap->site_capacity, sizeof(*heap->sites));
	torsh_number_index_create(&heap->site_index);
	torsh_live_create(&heap->live);
	heap->next_move = MOVES_LEAST;
}

void torsh_heap_destroy(struct heap *heap)
{
	torsh_live_destroy(&heap->live);
	torsh_small_destroy(&heap->small);
	free(heap->sites);
	torsh_number_index_destroy(&heap->site_index);
	torsh_site_totals_destroy(&heap->totals);
	free(heap->ended);
	torsh_moments_destroy(&heap->moments);
	torsh_window_peaks_destroy(&heap->window_peaks);
	torsh_sampling_destroy(&heap->sampling);
	*heap = (struct heap){0};
}

void torsh_heap_sample(struct heap *heap, uint64_t rate)
{
	heap->sampling.rate = rate;
}

/*
 * The empty stack's site is 0, which torsh_heap_site treats as "none yet", so it calls this each
 * time.
 */
uint32_t torsh_heap_add_site(struct heap *heap, uint32_t stack)
{
	uint32_t site = heap->n_sites;

	if (!stack)
		return 0;
	heap->sites =
		torsh_array_reserve(heap->sites, site, &heap->site_capacity, sizeof(*heap->sites));
	heap->n_sites++;
	heap->sites[site].stack = stack;
	torsh_site_add(&heap->site_index, torsh_heap_site_stacks(heap));
	return site;
}

static uint64_t relative_stamp(const struct heap *heap, uint64_t stamp)
{
	uint64_t relative = stamp > heap->first_stamp ? stamp - heap->first_stamp : 0;

	return relative < LIVE_STAMP_MAX ? relative : LIVE_STAMP_MAX;
}

static void count_usable(struct heap *heap, const struct live_block *block, int sign)
{
	uint64_t usable = heap->sampling.rate ? 0 : block->usable;

	heap->usable_bytes += sign > 0 ? usable : 0 - usable;
	if (!usable)
		heap->n_usable_unknown += (uint64_t)(int64_t)sign;
}

/* Not inlined: the common path calls nothing. */
static __attribute__((noinline)) void note_change(struct heap *heap, uint32_t number, int64_t n,
						  int64_t bytes)
{
	struct heap_site *site = &heap->sites[number];

	if (!site->is_touched) {
		site->is_touched = true;
		torsh_moments_touch(&heap->moments, number);
	}
	if (heap->window_peaks.n_open)
		torsh_window_peaks_note(heap, number, n, bytes);
	if (heap->session_heap)
		torsh_session_heap_note(heap->session_heap, heap->tracker.last_stamp, number, n,
					bytes);
}

static inline void change_site(struct heap *heap, uint32_t number, int64_t n, int64_t bytes)
{
	struct heap_site *site = &heap->sites[number];

	torsh_site_totals_change(&heap->totals, site, &heap->tracker, heap->step_name, n, bytes);
	site->is_changed = true;
	if (__builtin_expect(!site->is_touched || heap->window_peaks.n_open || heap->session_heap,
			     0))
		note_change(heap, number, n, bytes);
}

/* A sampled block came to the site, or left it. Call before change_site. */
static __attribute__((noinline)) void note_sample(struct heap *heap, uint32_t site, uint64_t size,
						  int sign)
{
	torsh_sampling_note(&heap->sampling, site, heap->tracker.peak_number, size, sign);
}

static inline void change_block(struct heap *heap, uint32_t site, const struct live_block *block,
				int sign)
{
	struct sample_weight weight = torsh_heap_weigh(heap, block);

	if (__builtin_expect(heap->sampling.rate != 0, 0))
		note_sample(heap, site, block->size, sign);
	change_site(heap, site, sign * weight.blocks, sign * weight.bytes);
}

void torsh_heap_mark_step(struct heap *heap, uint64_t stamp)
{
	heap->step = relative_stamp(heap, stamp);
	if (!heap->first_step)
		heap->first_step = heap->step;
	heap->n_ended = 0;
}

void torsh_heap_name_step(struct heap *heap, uint64_t stamp, uint32_t name, bool is_by_optimizer)
{
	heap->step_name = name;
	if (heap->session_heap)
		torsh_session_heap_name_step(heap->session_heap, stamp, name, is_by_optimizer);
}

static __attribute__((noinline)) void keep_ended(struct heap *heap, const struct live_block *block)
{
	heap->ended = torsh_array_reserve(heap->ended, heap->n_ended, &heap->ended_capacity,
					  sizeof(*heap->ended));
	heap->ended[heap->n_ended++] = (struct ended_block){.stamp = block->stamp,
							    .weight = torsh_heap_weigh(heap, block),
							    .site = block->site};
}

static inline void count_lifetime(struct heap *heap, const struct live_block *block)
{
	uint64_t age = relative_stamp(heap, heap->tracker.last_stamp) - block->stamp;
	struct heap_lifetime *lifetime =
		&heap->lifetimes[age ? 64 - (unsigned)__builtin_clzll(age) : 0];
	struct sample_weight weight = torsh_heap_weigh(heap, block);

	lifetime->blocks += (uint64_t)weight.blocks;
	lifetime->bytes += (uint64_t)weight.bytes;
}

/* The caller has updated the sum. */
static inline __attribute__((always_inline)) void leave_site(struct heap *heap,
							     const struct live_block *block)
{
	if (__builtin_expect(block->stamp != STAMP_UNKNOWN, 1))
		count_lifetime(heap, block);
	if (__builtin_expect(block->stamp < heap->step && block->stamp >= heap->first_step, 0))
		keep_ended(heap, block);
	change_block(heap, block->site, block, -1);
	count_usable(heap, block, -1);
}

static inline __attribute__((always_inline)) void
end_block(struct heap *heap, const struct live_block *block, uint64_t stamp)
{
	struct sample_weight weight = torsh_heap_weigh(heap, block);

	torsh_peak_tracker_change(&heap->tracker, stamp, -weight.blocks, -weight.bytes);
	leave_site(heap, block);
}

/* Not inlined, for all except the common free. */
static __attribute__((noinline)) void end_rarely(struct heap *heap, const struct live_block *block,
						 uint64_t stamp)
{
	end_block(heap, block, stamp);
}

static void end_unseen(struct heap *heap, const struct live_block *block, uint64_t stamp)
{
	end_rarely(heap, block, stamp);
	heap->implicit_frees++;
}

/* Not inlined, like everything that only the small table needs: the common path stays short. */
static __attribute__((noinline)) bool take_small(struct heap *heap, uint64_t address,
						 struct live_block *block)
{
	struct small_block small;

	if (__builtin_expect(!heap->small.n_blocks, 1) ||
	    !torsh_small_take(&heap->small, address, &small))
		return false;
	*block = (struct live_block){.address = address,
				     .size = small.size,
				     .usable = small.usable,
				     .stamp = STAMP_UNKNOWN,
				     .site = heap->small_site};
	return true;
}

static void note_left_out(struct heap *heap, uint64_t stamp)
{
	if (!heap->n_left_out++ || stamp < heap->small_first)
		heap->small_first = stamp;
	if (stamp > heap->small_last)
		heap->small_last = stamp;
}

/* Returns false and does nothing unless the block belongs in the small table. */
static __attribute__((noinline)) bool keep_small(struct heap *heap, const struct heap_alloc *alloc)
{
	struct small_block small = {
		.address = alloc->address, .size = alloc->size, .usable = alloc->usable};
	struct live_block before;

	if (small.usable < small.size)
		small.usable = 0;
	if (!heap->leaves_out_stacks || !torsh_small_fits(&small))
		return false;
	if (torsh_live_take(&heap->live, alloc->address, &before))
		end_unseen(heap, &before, alloc->stamp);
	torsh_small_add(&heap->small, &small);
	note_left_out(heap, relative_stamp(heap, alloc->stamp));
	heap->usable_bytes += small.usable;
	heap->n_usable_unknown += !small.usable;
	return true;
}

/* What the table has as the block's usable size. */
static inline uint64_t usable_of(const struct heap *heap, const struct heap_alloc *alloc)
{
	if (__builtin_expect(heap->sampling.rate != 0, 0))
		return alloc->size + (uint64_t)alloc->weight.blocks;
	return __builtin_expect(alloc->usable >= alloc->size, 1) ? alloc->usable : 0;
}

/*
 * A thread's latest allocation is known by its address and stamp. Only a block that has the stamp
 * of the allocation before it has an owner: if that was at the same address in another thread, both
 * would be known by the same.
 */
static inline void keep_live(struct heap *heap, const struct heap_producer *producer,
			     const struct heap_alloc *alloc)
{
	struct live_block before, block = {.address = alloc->address,
					   .size = alloc->size,
					   .usable = usable_of(heap, alloc),
					   .stamp = producer->last_stamp,
					   .site = alloc->site};

	if (__builtin_expect(block.stamp == heap->last_alloc_stamp, 0))
		block.owner = producer->number + 1;
	heap->last_alloc_stamp = block.stamp;
	if (__builtin_expect(torsh_live_put(&heap->live, &block, &before), 0))
		end_unseen(heap, &before, alloc->stamp);
	count_usable(heap, &block, 1);
}

/* Returns the site that the block is charged to while it is live. */
static inline uint32_t keep_block(struct heap *heap, const struct heap_producer *producer,
				  const struct heap_alloc *alloc)
{
	struct live_block before;

	if (__builtin_expect(heap->small_site != 0, 0)) {
		if (take_small(heap, alloc->address, &before))
			end_unseen(heap, &before, alloc->stamp);
		if (keep_small(heap, alloc))
			return heap->small_site;
	}
	keep_live(heap, producer, alloc);
	return alloc->site;
}

static inline void count_alloc(struct heap *heap, struct heap_producer *producer,
			       const struct heap_alloc *alloc)
{
	static const struct scope none;

	heap->allocs += (uint64_t)alloc->weight.blocks;
	heap->alloc_bytes += (uint64_t)alloc->weight.bytes;
	heap->size_blocks[alloc->size ? 64 - __builtin_clzll(alloc->size) : 0]++;
	producer->allocs++;
	producer->alloc_bytes += alloc->size;
	producer->last_alloc = alloc->address;
	producer->last_site = alloc->site;
	if (__builtin_expect(heap->sampling.rate != 0, 0))
		torsh_site_totals_count_sample(&heap->totals, &heap->sites[alloc->site],
					       alloc->weight.blocks, alloc->weight.bytes,
					       producer->scope ? producer->scope : &none);
	else
		torsh_site_totals_count(&heap->totals, &heap->sites[alloc->site], alloc->size,
					producer->scope ? producer->scope : &none);
}

static void count_unknown(struct heap *heap)
{
	if (heap->was_paused)
		heap->pause_frees++;
	else
		heap->unknown_frees++;
}

void torsh_heap_end_unknown(struct heap *heap, struct heap_producer *producer)
{
	if (!producer->is_reallocating_unknown)
		return;
	producer->is_reallocating_unknown = false;
	count_unknown(heap);
}

static inline struct sample_weight weigh_new(struct heap *heap, const struct heap_alloc *alloc)
{
	if (__builtin_expect(!heap->sampling.rate, 1))
		return (struct sample_weight){.blocks = 1, .bytes = (int64_t)alloc->size};
	return torsh_sampling_weigh(&heap->sampling, alloc->site, alloc->size);
}

/* The sum changes once, from the old block to the new. */
static __attribute__((noinline)) void end_realloc(struct heap *heap, struct heap_producer *producer,
						  const struct heap_alloc *alloc)
{
	struct sample_weight old = torsh_heap_weigh(heap, &producer->old);

	torsh_peak_tracker_change(&heap->tracker, alloc->stamp, alloc->weight.blocks - old.blocks,
				  alloc->weight.bytes - old.bytes);
	leave_site(heap, &producer->old);
	producer->is_reallocating = false;
	producer->frees++;
	heap->frees++;
	heap->reallocs++;
}

void torsh_heap_alloc(struct heap *heap, struct heap_producer *producer, struct heap_alloc *alloc)
{
	bool is_move = alloc->is_realloc && producer->is_reallocating;
	uint32_t site;

	alloc->weight = weigh_new(heap, alloc);
	producer->last_stamp = relative_stamp(heap, alloc->stamp);
	site = keep_block(heap, producer, alloc);
	if (__builtin_expect(is_move, 0)) {
		end_realloc(heap, producer, alloc);
	} else {
		torsh_peak_tracker_change(&heap->tracker, alloc->stamp, alloc->weight.blocks,
					  alloc->weight.bytes);
		if (__builtin_expect(alloc->is_realloc, 0))
			torsh_heap_end_unknown(heap, producer);
	}
	if (__builtin_expect(heap->sampling.rate != 0, 0))
		note_sample(heap, site, alloc->size, 1);
	change_site(heap, site, alloc->weight.blocks, alloc->weight.bytes);
	count_alloc(heap, producer, alloc);
}

/* Remove the block at an address from the table that it is in. */
static bool take_block(struct heap *heap, uint64_t address, struct live_block *block)
{
	return torsh_live_take(&heap->live, address, block) || take_small(heap, address, block);
}

void torsh_heap_forget(struct heap *heap, uint64_t stamp, uint64_t address)
{
	struct live_block block;

	if (take_block(heap, address, &block))
		end_unseen(heap, &block, stamp);
}

void torsh_heap_ignore(struct heap *heap, struct stack_table *stacks, uint64_t stamp,
		       uint64_t address, uint32_t stack)
{
	struct live_block block, before;
	uint32_t from;

	if (!torsh_live_find(&heap->live, address, &block)) {
		if (!take_small(heap, address, &block))
			return;
		/* Charged to a site of its own again, as if it were allocated now. */
		block.stamp = relative_stamp(heap, stamp);
		torsh_live_put(&heap->live, &block, &before);
	}
	if (!stack)
		return;
	from = block.site;
	block.site = torsh_heap_site(heap, torsh_stacks_below(stacks, heap->sites[from].stack,
							      torsh_stacks_address(stacks, stack)));
	torsh_peak_tracker_change(&heap->tracker, stamp, 0, 0);
	change_block(heap, from, &block, -1);
	torsh_live_put(&heap->live, &block, &before);
	heap->sites[block.site].is_ignored = true;
	change_block(heap, block.site, &block, 1);
}

static inline void count_temporary(struct heap *heap, struct heap_producer *producer,
				   uint32_t number, uint64_t size)
{
	producer->last_alloc = 0;
	/* Between its allocation and its free the thread may have allocated blocks not sampled. */
	if (heap->sampling.rate)
		return;
	heap->temporary++;
	torsh_site_totals_count_temporary(&heap->totals, &heap->sites[number], size);
}

static __attribute__((noinline)) void free_small(struct heap *heap, struct heap_producer *producer,
						 uint64_t stamp, uint64_t address)
{
	struct live_block small;

	if (!take_small(heap, address, &small)) {
		count_unknown(heap);
		return;
	}
	heap->frees++;
	if (producer->last_alloc == address)
		count_temporary(heap, producer, producer->last_site, small.size);
	end_rarely(heap, &small, stamp);
}

/* Returns true if a block at producer->last_alloc is that allocation's. */
static inline bool is_latest(const struct heap_producer *producer, const struct live_block *block)
{
	return block->owner ? block->owner == producer->number + 1
			    : block->stamp == producer->last_stamp;
}

void torsh_heap_free(struct heap *heap, struct heap_producer *producer, uint64_t stamp,
		     uint64_t address)
{
	struct live_block block;

	producer->frees++;
	if (__builtin_expect(!torsh_live_take(&heap->live, address, &block), 0)) {
		free_small(heap, producer, stamp, address);
		return;
	}
	heap->frees++;
	if (producer->last_alloc == address && is_latest(producer, &block))
		count_temporary(heap, producer, block.site, block.size);
	end_block(heap, &block, stamp);
}

void torsh_heap_realloc_begin(struct heap *heap, struct heap_producer *producer, uint64_t stamp,
			      uint64_t address)
{
	if (producer->is_reallocating)
		torsh_heap_realloc_failed(heap, producer, stamp);
	producer->is_reallocating = take_block(heap, address, &producer->old);
	producer->is_reallocating_unknown = !producer->is_reallocating;
}

void torsh_heap_realloc_failed(struct heap *heap, struct heap_producer *producer, uint64_t stamp)
{
	const struct live_block *old = &producer->old;
	struct live_block other;

	producer->is_reallocating_unknown = false;
	if (!producer->is_reallocating)
		return;
	producer->is_reallocating = false;
	if (torsh_small_has(&heap->small, old->address) ||
	    torsh_live_find(&heap->live, old->address, &other))
		end_unseen(heap, old, stamp);
	else if (old->stamp == STAMP_UNKNOWN)
		torsh_small_add(&heap->small, &(struct small_block){.address = old->address,
								    .size = old->size,
								    .usable = old->usable});
	else
		torsh_live_put(&heap->live, old, &other);
}

void torsh_heap_realloc_unsampled(struct heap *heap, struct heap_producer *producer, uint64_t stamp)
{
	torsh_heap_end_unknown(heap, producer);
	if (!producer->is_reallocating)
		return;
	producer->is_reallocating = false;
	heap->frees++;
	heap->reallocs++;
	end_rarely(heap, &producer->old, stamp);
}

void torsh_heap_leave_out_stacks(struct heap *heap, bool is_so, uint32_t stack)
{
	/* Samples are few. */
	if (heap->sampling.rate)
		return;
	heap->leaves_out_stacks = is_so;
	if (is_so)
		heap->small_site = torsh_heap_site(heap, stack);
}

/* Move small blocks to the other table. */
struct move {
	struct heap *heap;
	struct moved {
		int64_t n, bytes;
	} * of_sites;
};

static bool move_block(void *context, const struct live_block *block)
{
	const struct move *move = context;
	struct heap *heap = move->heap;
	struct moved *moved = &move->of_sites[block->site];
	struct small_block small = {
		.address = block->address, .size = block->size, .usable = block->usable};

	/* Without a site, ignored blocks would count as leaks. */
	if (heap->sites[block->site].is_ignored || !torsh_small_fits(&small))
		return false;
	torsh_small_add(&heap->small, &small);
	note_left_out(heap, block->stamp);
	moved->n++;
	moved->bytes += (int64_t)block->size;
	return true;
}

void torsh_heap_move_small(struct heap *heap)
{
	struct move move = {.heap = heap};
	struct moved sum = {0};

	if (heap->live.n_blocks < heap->next_move || heap->sampling.rate)
		return;
	move.of_sites = torsh_memory_new(heap->n_sites, sizeof(*move.of_sites));
	torsh_live_sift(&heap->live, move_block, &move);
	torsh_peak_tracker_change(&heap->tracker, heap->tracker.last_stamp, 0, 0);
	for (uint32_t i = 0; i < heap->n_sites; i++) {
		const struct moved *moved = &move.of_sites[i];

		if (!moved->n)
			continue;
		change_site(heap, i, -moved->n, -moved->bytes);
		sum.n += moved->n;
		sum.bytes += moved->bytes;
	}
	if (sum.n)
		change_site(heap, heap->small_site, sum.n, sum.bytes);
	heap->next_move = heap->live.n_blocks + heap->live.n_blocks / 4 + MOVES_LEAST;
	free(move.of_sites);
}

uint64_t torsh_heap_table_bytes(const struct heap *heap)
{
	return torsh_live_bytes(&heap->live) + torsh_small_bytes(&heap->small);
}
