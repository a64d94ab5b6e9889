/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Children that a finished process forked and that have sent no hello yet. Any thread may call. */
#ifndef TORSH_WRITER_INPUT_PENDING_CHILDREN_H
#define TORSH_WRITER_INPUT_PENDING_CHILDREN_H

#include <stdbool.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

/* How long a process may take to send which fork of another it is. */
#define FORK_TIMEOUT_NS 500000000u

struct pending_child;

struct pending_children {
	pthread_mutex_t lock;
	struct pending_child *children;
	uint32_t n, capacity;
};

/* Create an empty list. */
void torsh_pending_children_create(struct pending_children *pending);

/* Free the list. */
void torsh_pending_children_destroy(struct pending_children *pending);

/* Add a child, unless it is gone already. */
void torsh_pending_children_add(struct pending_children *pending, pid_t pid, uint64_t now_ns);

/* Remove the child: it sent its hello. */
void torsh_pending_children_remove(struct pending_children *pending, pid_t pid);

/* Is one of them alive, and was added less than FORK_TIMEOUT_NS ago? */
bool torsh_pending_children_any(struct pending_children *pending, uint64_t now_ns);

#endif
