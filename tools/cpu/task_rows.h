/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The requests and tasks of processes, by kind and name over all of them, and one by one. */
#ifndef TORSH_CPU_TASK_ROWS_H
#define TORSH_CPU_TASK_ROWS_H

#include "agent/wire/event.h"
#include "tools/recording/recording.h"

extern const char *const torsh_task_kind_names[N_TASK_KINDS]; /* "request", "work" */

/* Blocks that ended requests left, with one stack. */
struct task_kept {
	const struct recorded_process *process;
	uint32_t stack; /* 0: not known */
	uint64_t blocks, bytes;
};

struct task_row {
	uint32_t kind; /* enum task_kind */
	const char *name; /* NULL: none, or others */
	uint64_t n_begun, n_ended, n_shared;
	uint64_t total_ns, min_ns, max_ns; /* of those that ended */
	uint64_t p50_ns, p99_ns; /* to 1 % */
	struct recorded_task_sum sum; /* without those that are shared */
	uint64_t n_keeping; /* ended ones with live blocks */
	uint64_t kept_blocks, kept_bytes;
	struct task_kept *kept; /* most bytes first */
	size_t n_kept, kept_room;
	struct recorded_task_bucket *buckets;
	size_t n_buckets, buckets_room;
};

/* A single one. */
struct task_single {
	const struct recorded_process *process;
	const struct recorded_task *task;
	const struct task_row *row;
};

struct task_rows {
	struct task_row *items;
	size_t n, room;
	struct task_single *singles;
	size_t n_singles;
	uint64_t n_unkept; /* that ended, and are only in the rows */
	bool is_sampled; /* bytes are estimates, and numbers of blocks not known */
	bool has_waits; /* waits were recorded */
};

/* Collect those of the processes. The caller frees them. */
void torsh_task_rows_collect(struct task_rows *rows, struct recorded_process *const *processes,
			     size_t n);

/* Free the rows. */
void torsh_task_rows_free(struct task_rows *rows);

#endif
