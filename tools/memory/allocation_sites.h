/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who holds memory: blocks and bytes per stack, as a list that reports narrow down, sort, name and print. Shares are
 * computed from the rows as recording.proto says.
 */
#ifndef TORSH_PROFILE_HOLDERS_H
#define TORSH_PROFILE_HOLDERS_H

#include "tools/recording/recording.h"
#include "tools/symbols/stack_view.h"
#include "tools/symbols/symbols.h"

enum holders_of {
	HOLDERS_LIVE, /* blocks that were not freed; those from before a fork are left out */
	HOLDERS_PEAK, /* shares at the moment of the highest heap */
	HOLDERS_JOINT_PEAK, /* the same of all processes' heaps together */
	HOLDERS_ALLOCATED, /* all blocks ever allocated */
	HOLDERS_TEMPORARY, /* freed by their own thread before it allocated another */
	HOLDERS_MAPPED, /* address space at the moment when most was mapped */
};

enum holders_order { ORDER_BYTES, ORDER_BLOCKS, ORDER_USABLE, ORDER_FIRST, ORDER_LAST };

/* What the blocks of a holder are, where that is to be told. */
enum holder_what {
	HOLDER_OF_BLOCKS,
	HOLDER_OF_TENSORS, /* that a framework's allocator gave out */
	HOLDER_OF_CACHE, /* what such an allocator has got, and has not given out */
};

struct holder {
	const struct profile_process *process;
	enum holder_what what;
	uint32_t stack; /* one of them, where several were merged */
	uint64_t blocks, bytes;
	uint64_t usable_bytes; /* where usable_is_known */
	uint64_t first_ns, last_ns; /* where has_times */
	bool usable_is_known, has_times;
	bool is_arena; /* CPython's: torsh_holders_mark_arenas */
	bool is_of_tensors; /* some of the blocks were a framework's tensors; known of what grows only */
	uint32_t operator, module; /* labels: in what they were allocated; 0: in none or not known, PROFILE_SEVERAL */
	/* Steps in which the first and the last of them were allocated: numbers and 1; 0: in none, or not known. */
	uint32_t first_step, last_step;
	const struct frame **frames; /* set by torsh_holders_name */
	size_t n_frames;
};

struct holders {
	struct holder *items;
	size_t n, n_room;
	enum stack_view view;
	size_t depth; /* frames that count; 0: all */
};

/* Add one, unless it holds nothing; what it was allocated in is found here. */
void torsh_holders_add(struct holders *holders, const struct holder *holder);

/* The same; what it was allocated in is said already. */
void torsh_holders_put(struct holders *holders, const struct holder *holder);

/* Add a process's. */
void torsh_holders_collect(struct holders *holders, const struct profile_process *process, enum holders_of what);

/* Tell arenas of CPython from what else is mapped; before stacks are merged. */
void torsh_holders_mark_arenas(struct holders *holders, struct symbols *symbols);

/* One holder for each stack that holders->view shows, of the innermost holders->depth frames. */
void torsh_holders_merge_stacks(struct holders *holders, struct symbols *symbols);

/* Largest first (ORDER_FIRST: oldest first); equal ones in the order of bytes, process and stack. */
void torsh_holders_sort(struct holders *holders, enum holders_order order);

/* Those with at least min_bytes before the others; returns how many they are. Keeps the order within both. */
size_t torsh_holders_put_large_first(struct holders *holders, uint64_t min_bytes);

/* Give the first n_first their frames, and merge those of a process that then look alike (same functions and lines). */
void torsh_holders_name(struct holders *holders, struct symbols *symbols, size_t n_first);

/* Names of what the holder's blocks were allocated in, NULL: in none, in several, or not known. */
const char *torsh_holder_operator(const struct holder *holder);
const char *torsh_holder_module(const struct holder *holder);

void torsh_holders_sum(const struct holders *holders, uint64_t *blocks, uint64_t *bytes);
void torsh_holders_free(struct holders *holders);

#endif
