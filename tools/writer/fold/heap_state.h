/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The heap of a process, folded from its events in the order of time: live blocks, totals by stack,
 * the exact peak, temporaries, sizes. Owned by the drain thread.
 *
 * What the program did wrong, or the agent could not see, is counted and never fatal:
 *	a free of an address where nothing lives	unknown_frees; pause_frees once recording
 *							was paused
 *	a block where one lives already			implicit_frees: the old one ends, its free
 *							was not seen
 *	a realloc of an address where nothing lives	unknown_frees, and an ordinary allocation
 * A realloc is one change from the old block to the new. Between its two events the old block still
 * counts, though its address may already be another's.
 *
 * Where memory is short, small blocks are kept without their stacks (small_table.h): all of them
 * are one site's, so that sums and peaks stay exact. When and by which thread they were allocated
 * is not kept: a block counts as temporary where its address is that of the thread's latest
 * allocation.
 */
#ifndef TORSH_WRITER_FOLD_HEAP_STATE_H
#define TORSH_WRITER_FOLD_HEAP_STATE_H

#include <stdbool.h>

#include "tools/base/containers/live_table.h"
#include "tools/writer/fold/peak_tracker.h"
#include "tools/writer/fold/scopes.h"
#include "tools/writer/fold/tables/small_table.h"
#include "tools/writer/fold/tables/stack_table.h"

#define HEAP_SIZE_CLASSES 65u
#define HEAP_SCOPES_DIFFER UINT32_MAX

/* A stack that blocks were allocated with. */
struct heap_site {
	struct site_usage live;
	uint32_t stack;
	uint64_t allocs, alloc_bytes;
	uint64_t temporary, temporary_bytes;
	bool is_changed; /* since the last checkpoint */
	struct scope scope; /* in which its blocks were allocated; HEAP_SCOPES_DIFFER: in several */
	bool is_ignored; /* its blocks are marked as no leak */
	/* a framework's allocator sent that it gave out one of its blocks */
	bool is_of_tensors;
};

/*
 * What the heap keeps of one producer of events: a thread, or the handlers that interrupt its
 * hooks.
 */
struct heap_producer {
	uint64_t last_alloc; /* address of its latest allocation, 0: none, or freed */
	uint32_t last_site; /* of that */
	uint32_t number; /* of its slot, as in live_block.producer */
	bool is_reallocating;
	bool is_reallocating_unknown; /* a block that was never seen */
	struct live_block old; /* while is_reallocating */
	uint64_t allocs, alloc_bytes, frees;
	uint32_t n_edges_passed; /* the process state's, at its latest event */
	const struct scope *scope; /* what its thread is in; NULL: nothing */
};

/* A block that was alive when the latest step began, and is not any more. */
struct ended_block {
	uint64_t stamp; /* of its allocation, as in live_block */
	uint64_t size;
	uint32_t site;
};

struct session_member;

struct heap {
	struct live_table live;
	struct small_table small; /* blocks that aren't in live */
	uint32_t small_site; /* theirs; 0: there never were any */
	bool leaves_out_stacks; /* of small blocks that come */
	/* since first_stamp: allocations of blocks that ever were in it */
	uint64_t small_first, small_last;
	uint64_t n_left_out; /* blocks that came without a stack, or lost it */
	/* blocks in live from which on torsh_heap_move_small is worth while again */
	uint64_t next_move;
	struct peak_tracker tracker;
	struct session_member *session_heap; /* gets each change of a site; NULL: there is none */
	uint32_t step_name; /* of the step that goes on, see step_marks.h */
	/* since first_stamp: when the first and the latest step began; 0: none did */
	uint64_t first_step, step;
	struct ended_block *ended; /* since then */
	uint32_t n_ended, ended_capacity;
	struct heap_site *sites; /* 0 is for the empty stack */
	uint32_t n_sites, site_capacity;
	uint64_t first_stamp; /* the times of blocks count from here */
	uint64_t usable_bytes; /* of live blocks with a known usable size */
	uint64_t n_usable_unknown; /* live blocks without */
	uint64_t allocs, alloc_bytes, frees, reallocs, temporary;
	uint64_t unknown_frees, implicit_frees;
	/* of addresses where nothing lives, since recording was first paused */
	uint64_t pause_frees;
	bool was_paused;
	uint64_t size_blocks[HEAP_SIZE_CLASSES];
};

/*
 * The program marked the block as no leak in a function that is the innermost frame of stack: its
 * stack gets that frame, which marks it in reports. Nothing happens where no block lives.
 */
void torsh_heap_ignore(struct heap *heap, struct stack_table *stacks, uint64_t stamp,
		       uint64_t address, uint32_t stack);

/* Create an empty heap; times of blocks count from first_stamp. */
void torsh_heap_create(struct heap *heap, uint64_t first_stamp);

/* Free the heap. */
void torsh_heap_destroy(struct heap *heap);

/*
 * Keep blocks that fit into the small table there from now on, or stop that. stack: the one that
 * they all count for.
 */
void torsh_heap_leave_out_stacks(struct heap *heap, struct stack_table *stacks, bool is_so,
				 uint32_t stack);

/*
 * Small blocks that are there lose their stacks, too, where there may be many that haven't;
 * leaves_out_stacks is set.
 */
void torsh_heap_move_small(struct heap *heap);

/* Bytes that the tables of blocks take. */
uint64_t torsh_heap_table_bytes(const struct heap *heap);

/*
 * A step begins: what is alive now was left by the steps before it, whatever the program frees at
 * its end.
 */
void torsh_heap_mark_step(struct heap *heap, uint64_t stamp);

/*
 * What is allocated from here on is allocated in that step. is_by_optimizer: as
 * torsh_step_marks_final has it.
 */
void torsh_heap_name_step(struct heap *heap, uint64_t stamp, uint32_t name, bool is_by_optimizer);

/* Add a site for a stack that has none yet. Returns its number; 0 for the empty stack. */
uint32_t torsh_heap_add_site(struct heap *heap, struct stack_table *stacks, uint32_t stack);

/* The number of a stack's site, which is added where there is none. */
static inline uint32_t torsh_heap_site(struct heap *heap, struct stack_table *stacks,
				       uint32_t stack)
{
	uint32_t site = stacks->rows[stack].heap_site;

	return __builtin_expect(site != 0, 1) ? site : torsh_heap_add_site(heap, stacks, stack);
}

struct heap_alloc {
	uint64_t stamp;
	uint64_t address; /* not 0 */
	uint64_t size; /* <= LIVE_SIZE_MAX */
	uint64_t usable; /* 0: not known */
	uint32_t site;
	bool is_realloc; /* completes the producer's realloc, where one is under way */
};

/* Fold an allocation, or the second half of a realloc. */
void torsh_heap_alloc(struct heap *heap, struct heap_producer *producer,
		      const struct heap_alloc *alloc);

/* Fold a free. */
void torsh_heap_free(struct heap *heap, struct heap_producer *producer, uint64_t stamp,
		     uint64_t address);

/* Fold the first half of a realloc. */
void torsh_heap_realloc_begin(struct heap *heap, struct heap_producer *producer, uint64_t stamp,
			      uint64_t address);

/*
 * A block that is not to be recorded was allocated there: one that lived ends, its free was not
 * seen.
 */
void torsh_heap_forget(struct heap *heap, uint64_t stamp, uint64_t address);

/*
 * The realloc under way of a block that was never seen is done: that block has ended, and not
 * before.
 */
void torsh_heap_end_unknown(struct heap *heap, struct heap_producer *producer);

/* The realloc under way did not happen, or its end will never be known: the old block lives on. */
void torsh_heap_realloc_failed(struct heap *heap, struct heap_producer *producer, uint64_t stamp);

#endif
