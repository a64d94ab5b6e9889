/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the threads of a process waited for: the waits by thread, kind, stack and operator, and
 * shorter calls by thread and kind. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_THREAD_WAITS_H
#define TORSH_WRITER_FOLD_TABLES_THREAD_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/hash_map.h"

#define THREAD_WAITS_MAX (1u << 16) /* further stacks and operators count as 0 */

struct thread_wait_key {
	uint32_t thread; /* its number */
	uint32_t kind; /* enum thread_wait_kind */
	uint32_t stack;
	uint32_t operator; /* label of the innermost one; 0: none */
};

struct thread_wait {
	struct thread_wait_key key;
	uint64_t n, total_ns, longest_ns;
	uint64_t n_unfinished; /* of n: at the end of the process they lasted */
};

struct shorter_waits {
	uint32_t thread, kind;
	uint64_t n, total_ns;
};

struct thread_waits {
	struct hash_map by_key; /* index in items, by struct thread_wait_key */
	struct thread_wait *items;
	uint32_t n;
	size_t capacity;
	struct hash_map shorter_by_key; /* index in shorter, by thread and kind */
	struct shorter_waits *shorter;
	uint32_t n_shorter;
	size_t shorter_capacity;
	uint64_t n_taken; /* events: rises with each change */
};

/* Free them. */
void torsh_thread_waits_free(struct thread_waits *waits);

/* A wait is over, or is_unfinished: it lasts at the end of the process. */
void torsh_thread_waits_take(struct thread_waits *waits, struct thread_wait_key key,
			     uint64_t duration_ns, bool is_unfinished);

/* n calls of that kind that took less together took total_ns. */
void torsh_thread_waits_shorter(struct thread_waits *waits, uint32_t thread, uint32_t kind,
				uint64_t n, uint64_t total_ns);

#endif
