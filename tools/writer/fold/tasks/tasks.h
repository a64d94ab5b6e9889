/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests and tasks of a process, and what its threads did for each: processor time, waits, blocks
 * while it ran and those that are still there. What counts for one also counts for the one in which
 * it began. Owned by the drain thread.
 *
 * The tasks of one name are added up (task_names.h). Of single ones those that still matter are
 * kept: that have not ended, have blocks, or are among the slowest and the hungriest. So memory
 * depends on names, and on live tasks and blocks, not on how many requests there were.
 */
#ifndef TORSH_WRITER_FOLD_TASKS_TASKS_H
#define TORSH_WRITER_FOLD_TASKS_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/live_table.h"
#include "tools/writer/fold/tasks/task_names.h"

#define TASKS_KEPT_MAX 16384u /* that have ended; more are removed down to what matters */
#define TASKS_KEPT_OF_EACH 2048u /* the slowest, those with most bytes, with most processor time */

struct folded_task {
	uint64_t number; /* 0: a free item */
	uint32_t kind, flags; /* enum task_kind, enum task_flag */
	uint32_t task; /* label of its own name; 0: none */
	uint32_t name; /* index in names */
	uint32_t parent; /* item number and 1; 0: none */
	uint32_t n_children; /* items whose parent this is */
	uint32_t n_threads; /* that work for it, or resize a block of it */
	uint64_t trace_high, trace_low, span;
	uint64_t begin_ns, end_ns; /* session times */
	bool has_ended;
	struct task_sum sum;
	uint64_t live_blocks, live_bytes, peak_bytes;
	uint64_t end_blocks, end_bytes; /* live when it ended */
};

/* Of a ring consumer: what its thread is working for. */
struct task_thread {
	uint32_t current; /* item number and 1; 0: none */
	uint64_t begin_ns, cpu_ns; /* of the turn */
	/* between the two events of a realloc: what the old block counts for, as in current */
	uint32_t old_task;
	uint64_t old_address, old_bytes;
};

struct tasks {
	struct folded_task *items;
	uint32_t n;
	size_t capacity;
	uint32_t *free_items; /* numbers */
	uint32_t n_free;
	size_t free_capacity;
	uint32_t n_ended; /* items that have ended */
	uint32_t next_prune; /* n_ended at which items are removed */
	struct hash_map by_number;
	struct task_names names;
	struct live_table blocks; /* site: item number */
	bool has_blocks; /* blocks was created: heap events matter */
	uint64_t n_unknown; /* turns to tasks that are not known */
	uint64_t n_removed; /* single ones */
	uint64_t n_taken; /* rises with each change */
};

/* Free the tasks. */
void torsh_tasks_destroy(struct tasks *tasks);

/* A task began; the event's labels are the recording's numbers. Sent again: it is known better. */
void torsh_tasks_begin(struct tasks *tasks, const struct event_task *event, uint64_t at_ns);

/* The thread turns to another task. */
void torsh_tasks_turn(struct tasks *tasks, struct task_thread *thread,
		      const struct event_task_turn *event, uint64_t at_ns);

/* The task ended, or ended once more: the last time counts. */
void torsh_tasks_end(struct tasks *tasks, uint64_t number, uint64_t at_ns);

/* The thread has ended. */
void torsh_tasks_end_thread(struct tasks *tasks, struct task_thread *thread);

/* The thread waited. */
void torsh_tasks_wait(struct tasks *tasks, const struct task_thread *thread, uint64_t duration_ns);

/* A block was allocated by the thread; its old one, if it is resized, ends. */
void torsh_tasks_alloc(struct tasks *tasks, struct task_thread *thread, uint64_t address,
		       uint64_t bytes);

/* A block was freed, or lost its address. */
void torsh_tasks_free(struct tasks *tasks, uint64_t address);

/* A block is being resized: it ends with the next torsh_tasks_alloc of the thread, if ever. */
void torsh_tasks_resize(struct tasks *tasks, struct task_thread *thread, uint64_t address);

/* That failed, or ends without a block that is known. */
void torsh_tasks_not_resized(struct tasks *tasks, struct task_thread *thread, bool is_there);

#endif
