/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Children that a finished process forked and that have not sent a hello yet. Any thread may call.
 */
#ifndef TORSH_WRITER_INPUT_PENDING_CHILDREN_H
#define TORSH_WRITER_INPUT_PENDING_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

/* Time limit for a process to report which fork of another process it is. */
#define FORK_TIMEOUT_NS 500000000u

struct pending_child;

struct pending_children {
	pthread_mutex_t lock;
	struct pending_child *children;
	uint32_t n;
	size_t capacity;
};

/* Create an empty list. */
void torsh_pending_children_create(struct pending_children *pending);

/* Free the list. */
void torsh_pending_children_destroy(struct pending_children *pending);

/* Add a child, unless it has ended already. */
void torsh_pending_children_add(struct pending_children *pending, pid_t pid, uint64_t now_ns);

/* Remove the child: it sent its hello. */
void torsh_pending_children_remove(struct pending_children *pending, pid_t pid);

/* Returns true if one of them is alive and was added less than FORK_TIMEOUT_NS ago. */
bool torsh_pending_children_any(struct pending_children *pending, uint64_t now_ns);

#endif
