/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Requests and tasks added up by kind and name, with a histogram of how long they took. */
#ifndef TORSH_WRITER_FOLD_TASKS_TASK_NAMES_H
#define TORSH_WRITER_FOLD_TASKS_TASK_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/hash_map.h"
#include "tools/base/task_buckets.h"

#define TASK_NAMES_MAX 4096u /* further ones have the name 0 */

/* What threads did for tasks. */
struct task_sum {
	uint64_t turns, run_ns; /* on a thread */
	uint64_t cpu_ns;
	uint64_t waits, wait_ns;
	uint64_t allocs, alloc_bytes;
};

struct task_name {
	uint32_t kind, name; /* enum task_kind, label; 0: others */
	uint64_t n_begun, n_ended;
	uint64_t n_shared; /* of which only times are known */
	uint64_t total_ns, min_ns, max_ns; /* of those that ended, from begin to end */
	struct task_sum sum;
	uint32_t *buckets; /* TASK_BUCKETS: how many took so long; NULL: none has ended */
};

struct task_names {
	struct task_name *items;
	uint32_t n;
	size_t capacity;
	struct hash_map by_key;
};

/* Free the names. */
void torsh_task_names_free(struct task_names *names);

/* The index of the name. */
uint32_t torsh_task_names_find(struct task_names *names, uint32_t kind, uint32_t name);

/* A task of that name took so long. */
void torsh_task_name_add(struct task_name *name, uint64_t duration_ns);

#endif
