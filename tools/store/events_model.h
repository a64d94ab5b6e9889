/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The predictions that encoder and decoder of event columns share, from the events of the message
 * so far: the next stack, the size that a stack allocates, the next address of the allocator. A
 * correct prediction takes one bit. Both sides must predict exactly the same: FORMAT.md describes
 * it.
 *
 * Freed addresses are stored in lists by size and returned last in, first out, as an allocator
 * does.
 */
#ifndef TORSH_STORE_EVENTS_MODEL_H
#define TORSH_STORE_EVENTS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/store/events_columns.h"

enum column {
	COLUMN_OP, /* one byte an event */
	COLUMN_TIME, /* varint: steps since the event before */
	COLUMN_THREAD, /* varint: row */
	COLUMN_STACK, /* varint: number, as zig-zag difference to the guess */
	COLUMN_SIZE, /* varint */
	COLUMN_SHAPE, /* entry, and the usable size where it is not what is expected */
	/* varint: zig-zag difference to the last one given, in 16 bytes; or 8 bytes */
	COLUMN_ADDRESS,
	COLUMN_FREED, /* varint: how many allocations ago; or an address */
	COLUMN_COLD, /* everything else */
	N_COLUMNS
};

/* The op byte. */
#define OP_KIND 3u
#define OP_FREE 0u
#define OP_ALLOC 1u
#define OP_REALLOC_BEGIN 2u
#define OP_COLD 3u
#define OP_TIME 4u /* the time has moved: COLUMN_TIME */
#define OP_THREAD 8u /* another thread: COLUMN_THREAD */
/* Of an alloc. */
#define OP_ADDRESS_SHIFT 4
#define OP_ADDRESS 3u /* enum op_address */
/* size, entry or usable size are not what was guessed: COLUMN_SIZE and COLUMN_SHAPE */
#define OP_SHAPE 64u
#define OP_STACK 128u /* the stack is not what was guessed: COLUMN_STACK */
/* Of a free or realloc_begin: which block, by its place among the allocations of the message. */
#define OP_FREED_SHIFT 4

enum op_address {
	OP_ADDRESS_LISTED, /* the head of the size's list */
	/* after the last one that no guess gave; of a realloc: where the block was */
	OP_ADDRESS_NEXT,
	OP_ADDRESS_NEAR, /* COLUMN_ADDRESS, a difference */
	OP_ADDRESS_WHOLE, /* COLUMN_ADDRESS, eight bytes */
};

enum op_freed {
	OP_FREED_LATEST, /* 0-9: that many allocations before the latest */
	OP_FREED_AFTER = 10, /* the allocation after that of the block freed last */
	OP_FREED_BEFORE, /* the one before it */
	OP_FREED_BACK, /* COLUMN_FREED: that many before the latest */
	/* COLUMN_FREED: not of this message; zig-zag difference to the last such, in 16 bytes */
	OP_FREED_NEAR,
	OP_FREED_WHOLE, /* COLUMN_FREED: not of this message; eight bytes */
};

#define MODEL_SLOTS (1u << 14)
#define MODEL_THREADS 64u
#define MODEL_CLASSES 80u
#define MODEL_LISTED 32u

/* What a stack allocated last. */
struct model_shape {
	uint64_t size;
	uint64_t surplus; /* usable size beyond the expected one, modulo 2^64 */
	uint32_t entry;
};

struct model_thread {
	uint32_t stack; /* of its last allocation */
	uint32_t freed; /* allocation number + 1 of the block that it freed last */
	uint64_t old; /* block of its realloc under way, 0: none */
	uint64_t old_usable;
};

/* A stack of freed addresses; when it is full the oldest is forgotten. */
struct model_list {
	uint64_t addresses[MODEL_LISTED];
	uint32_t n; /* ever pushed, less popped; the place is the value modulo MODEL_LISTED */
	uint32_t n_held;
};

struct model_block {
	uint64_t address, usable;
};

struct events_model {
	uint64_t step; /* the time of the last event */
	uint32_t thread;
	uint64_t near_alloc, near_free; /* last explicit addresses, in 16 bytes */
	uint64_t next; /* after the last block with an unpredicted address */
	struct model_thread threads[MODEL_THREADS];
	uint32_t successor[MODEL_SLOTS]; /* by stack: the one that came after it */
	struct model_shape shapes[MODEL_SLOTS];
	struct model_list lists[MODEL_CLASSES];
	struct model_block *blocks; /* by number of allocation in this message */
	uint32_t n_blocks;
	size_t block_capacity;
};

/* Begin a message with a first event at that time; blocks[] keeps its memory. */
void torsh_model_start(struct events_model *model, uint64_t first_step);

/* Free what the model holds. */
void torsh_model_free(struct events_model *model);

/* The current thread's state. */
static inline struct model_thread *torsh_model_thread(struct events_model *model)
{
	return &model->threads[model->thread % MODEL_THREADS];
}

/* The guessed stack of the next allocation. */
static inline uint32_t torsh_model_stack(struct events_model *model)
{
	return model->successor[torsh_model_thread(model)->stack % MODEL_SLOTS];
}

/* The guessed size of a stack's allocation. */
static inline struct model_shape *torsh_model_shape(struct events_model *model, uint32_t stack)
{
	return &model->shapes[stack % MODEL_SLOTS];
}

/* The address that was freed last in the list of that usable size; 0: the list is empty. */
uint64_t torsh_model_listed(const struct events_model *model, uint64_t usable);

/* The address after the last block that no list gave; for a realloc the block's own. */
uint64_t torsh_model_next(struct events_model *model, uint32_t entry);

/* Update the model with an allocation. how is the source of its address. Returns 0 or -ENOMEM. */
int torsh_model_alloc(struct events_model *model, const struct event_alloc *alloc, uint32_t stack,
		      enum op_address how);

/*
 * Block number `block` (UINT32_MAX: allocated before this message) ends, by free or by the realloc
 * that begins.
 */
void torsh_model_free_block(struct events_model *model, uint32_t block, uint64_t address,
			    bool is_realloc);

#endif
