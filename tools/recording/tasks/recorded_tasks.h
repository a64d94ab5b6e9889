/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The requests and tasks of a process, as in Tasks and TaskNames: a part of recording.h. */
#ifndef TORSH_RECORDING_TASKS_RECORDED_TASKS_H
#define TORSH_RECORDING_TASKS_RECORDED_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recorded_task_sum {
	uint64_t turns, run_ns, cpu_ns;
	uint64_t waits, wait_ns;
	uint64_t allocs, alloc_bytes;
};

struct recorded_task {
	uint32_t name; /* index of its name */
	uint32_t task; /* label; 0: none */
	bool is_shared; /* only its times are known */
	bool has_ended;
	uint64_t trace_high, trace_low, span;
	uint64_t begin_ns, duration_ns;
	struct recorded_task_sum sum;
	uint64_t peak_bytes, end_blocks, end_bytes, live_blocks, live_bytes;
};

/* A row of TaskNames; of its buckets and kept blocks: where they begin. */
struct recorded_task_name {
	uint32_t kind, name; /* enum task_kind; label, 0: one of too many */
	uint64_t n_begun, n_ended, n_shared;
	uint64_t total_ns, min_ns, max_ns;
	struct recorded_task_sum sum;
	size_t first_bucket, n_buckets, first_kept, n_kept;
};

struct recorded_task_bucket {
	uint32_t bucket;
	uint64_t n;
};

/* Live blocks of ended tasks with one stack. */
struct recorded_kept {
	uint32_t stack; /* 0: not known */
	uint64_t blocks, bytes;
};

struct recorded_tasks {
	struct recorded_task *items;
	size_t n;
	bool is_sampled;
	uint64_t n_unkept;
	struct recorded_task_name *names;
	size_t n_names;
	struct recorded_task_bucket *buckets;
	struct recorded_kept *kept;
};

#endif
