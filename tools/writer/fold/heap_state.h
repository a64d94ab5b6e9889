/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The heap of a process, folded from its events in time order: live blocks, totals by stack, the
 * exact peak, temporaries, sizes. Owned by the drain thread.
 *
 * Errors of the program and gaps in the agent's view are counted and are never fatal:
 *	a free of an address without a live block	unknown_frees; pause_frees once recording
 *							was paused
 *	a block at the address of a live block		implicit_frees: the old one ends, its free
 *							was not seen
 *	a realloc of an address without a live block	unknown_frees, and an ordinary allocation
 * A realloc is one change from the old block to the new. Between its two events the old block still
 * counts, though its address may already be another's.
 *
 * When memory is short, small blocks are stored without their stacks (small_table.h): all of them
 * belong to one site, so sums and peaks stay exact. Their allocation times and threads are not
 * stored: a block counts as temporary if its address is that of the thread's latest allocation.
 */
#ifndef TORSH_WRITER_FOLD_HEAP_STATE_H
#define TORSH_WRITER_FOLD_HEAP_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/base/containers/live_table.h"
#include "tools/writer/fold/heap_moments.h"
#include "tools/writer/fold/peak_tracker.h"
#include "tools/writer/fold/scopes.h"
#include "tools/writer/fold/tables/site_index.h"
#include "tools/writer/fold/tables/sampling.h"
#include "tools/writer/fold/tables/site_totals.h"
#include "tools/writer/fold/tables/small_table.h"
#include "tools/writer/fold/program/stack_table.h"
#include "tools/writer/fold/tables/window_peaks.h"

#define HEAP_SIZE_CLASSES 65u

/* State per event stream: a thread, or the signal handlers that interrupt its hooks. */
struct heap_producer {
	uint64_t last_alloc; /* address of the latest allocation; 0: none, or freed since */
	uint64_t last_stamp; /* of that allocation: by it its block is known */
	uint32_t last_site; /* of that allocation */
	uint32_t number; /* of its slot */
	bool is_reallocating;
	bool is_reallocating_unknown; /* the old block is unknown */
	struct live_block old; /* while is_reallocating */
	uint64_t allocs, alloc_bytes, frees;
	uint32_t n_edges_passed; /* value of the process state at its latest event */
	uint32_t n_edges_counted; /* likewise, at its latest counts of the CPU */
	bool are_counts_paused; /* these were left out */
	const struct scope *scope; /* the thread's current scope; NULL: none */
};

/* A block that was live when the latest step began and has ended since. */
struct ended_block {
	uint64_t stamp; /* of its allocation, as in live_block.stamp */
	struct sample_weight weight;
	uint32_t site;
};

struct session_member;

struct heap {
	struct live_table live;
	struct small_table small; /* blocks that are not in live */
	uint32_t small_site; /* site of the blocks in small; 0: small was never used */
	bool leaves_out_stacks; /* new small blocks lose their stacks */
	/* allocation times, since first_stamp, of all blocks that were ever in small */
	uint64_t small_first, small_last;
	uint64_t n_left_out; /* blocks that were stored without a stack or lost it */
	/* number of blocks in live at which torsh_heap_move_small pays off again */
	uint64_t next_move;
	struct peak_tracker tracker;
	struct session_member *session_heap; /* receives each change of a site; NULL: none */
	uint32_t step_name; /* of the current step, see step_marks.h */
	/* start of the first and of the latest step, since first_stamp; 0: none */
	uint64_t first_step, step;
	struct ended_block *ended; /* blocks that ended since the latest step began */
	uint32_t n_ended;
	size_t ended_capacity;
	struct heap_site *sites; /* [0]: the empty stack */
	uint32_t n_sites;
	size_t site_capacity;
	struct number_index site_index;
	struct site_totals_table totals;
	uint64_t first_stamp; /* times of blocks are relative to this */
	uint64_t last_alloc_stamp; /* of the latest allocation, as in live_block.stamp */
	uint64_t usable_bytes; /* of live blocks with a known usable size */
	uint64_t n_usable_unknown; /* live blocks without a known usable size */
	uint64_t allocs, alloc_bytes, frees, reallocs, temporary;
	uint64_t unknown_frees, implicit_frees;
	/* frees of addresses without a live block, since recording was first paused */
	uint64_t pause_frees;
	bool was_paused;
	uint64_t size_blocks[HEAP_SIZE_CLASSES];
	/*
	 * Blocks that ended, by floor(log2(stamps they lived)) + 1; without small blocks. A realloc
	 * ends a block.
	 */
	struct heap_lifetime {
		uint64_t blocks, bytes;
	} lifetimes[HEAP_SIZE_CLASSES];
	struct moments moments;
	struct window_peaks window_peaks;
	/*
	 * rate 0: every block is folded. Else blocks are samples: all figures are estimates, and
	 * temporary blocks, usable sizes and last_alloc are not known
	 */
	struct sampling sampling;
};

/* The heap's blocks are samples at this rate; 0: they are all blocks. Call before the first. */
void torsh_heap_sample(struct heap *heap, uint64_t rate);

/* What a live block stands for: itself, or as a sample an estimated number of blocks. */
static inline struct sample_weight torsh_heap_weigh(const struct heap *heap,
						    const struct live_block *block)
{
	if (__builtin_expect(!heap->sampling.rate, 1))
		return (struct sample_weight){.blocks = 1, .bytes = (int64_t)block->size};
	/* For samples the field of the usable size has the number of blocks above the size. */
	return (struct sample_weight){.blocks = (int64_t)(block->usable - block->size),
				      .bytes = torsh_sampling_bytes(&heap->sampling, block->size)};
}

/*
 * The program marked the block as not leaked. stack's innermost frame is the marking function; the
 * block's stack gets that frame, by which reports recognise the mark. Does nothing if no block is
 * live at the address.
 */
void torsh_heap_ignore(struct heap *heap, struct stack_table *stacks, uint64_t stamp,
		       uint64_t address, uint32_t stack);

/* Create an empty heap; times of blocks are relative to first_stamp. */
void torsh_heap_create(struct heap *heap, uint64_t first_stamp);

/* Free the heap. */
void torsh_heap_destroy(struct heap *heap);

/*
 * Start or stop storing blocks that fit in the small table there. stack: the stack that all of them
 * are charged to.
 */
void torsh_heap_leave_out_stacks(struct heap *heap, bool is_so, uint32_t stack);

/*
 * Remove the stacks of existing small blocks too, if enough of them may be left. Requires
 * leaves_out_stacks.
 */
void torsh_heap_move_small(struct heap *heap);

/* Size of the block tables in bytes. */
uint64_t torsh_heap_table_bytes(const struct heap *heap);

/*
 * A step begins: the blocks that are live now were left by earlier steps, even if the program frees
 * them at its end.
 */
void torsh_heap_mark_step(struct heap *heap, uint64_t stamp);

/*
 * Attribute later allocations to that step. is_by_optimizer: as returned by torsh_step_marks_final.
 */
void torsh_heap_name_step(struct heap *heap, uint64_t stamp, uint32_t name, bool is_by_optimizer);

/* Returns the totals of a site. */
static inline struct site_totals torsh_heap_totals(const struct heap *heap, uint32_t site)
{
	return torsh_site_totals(&heap->totals, &heap->sites[site]);
}

static inline struct site_stacks torsh_heap_site_stacks(const struct heap *heap)
{
	return (struct site_stacks){&heap->sites->stack, sizeof(*heap->sites)};
}

/* Add a site for a stack that has none. Returns its number; 0 for the empty stack. */
uint32_t torsh_heap_add_site(struct heap *heap, uint32_t stack);

/* Returns the number of a stack's site; adds the site if needed. */
static inline uint32_t torsh_heap_site(struct heap *heap, uint32_t stack)
{
	uint32_t site = torsh_site_find(&heap->site_index, torsh_heap_site_stacks(heap), stack);

	return __builtin_expect(site != 0, 1) ? site : torsh_heap_add_site(heap, stack);
}

struct heap_alloc {
	uint64_t stamp;
	uint64_t address; /* not 0 */
	uint64_t size; /* <= LIVE_SIZE_MAX */
	uint64_t usable; /* 0: unknown */
	uint32_t site;
	/* what it stands for; set by torsh_heap_alloc */
	struct sample_weight weight;
	bool is_realloc; /* completes the producer's pending realloc, if there is one */
};

/* Fold an allocation, or the second half of a realloc. */
void torsh_heap_alloc(struct heap *heap, struct heap_producer *producer, struct heap_alloc *alloc);

/* Fold a free. */
void torsh_heap_free(struct heap *heap, struct heap_producer *producer, uint64_t stamp,
		     uint64_t address);

/* Fold the first half of a realloc. */
void torsh_heap_realloc_begin(struct heap *heap, struct heap_producer *producer, uint64_t stamp,
			      uint64_t address);

/*
 * An allocation that is not recorded took this address: a live block there ends, because its free
 * was not seen.
 */
void torsh_heap_forget(struct heap *heap, uint64_t stamp, uint64_t address);

/* Complete the pending realloc of a sampled block: it ends, and its new block is not sampled. */
void torsh_heap_realloc_unsampled(struct heap *heap, struct heap_producer *producer,
				  uint64_t stamp);

/* Complete the pending realloc of an unknown block: the block ends now. */
void torsh_heap_end_unknown(struct heap *heap, struct heap_producer *producer);

/*
 * Cancel the pending realloc because it failed or its end is never seen: the old block stays live.
 */
void torsh_heap_realloc_failed(struct heap *heap, struct heap_producer *producer, uint64_t stamp);

#endif
