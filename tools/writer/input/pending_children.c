/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/pending_children.h"

#include <stdbool.h>
#include <signal.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"

struct pending_child {
	pid_t pid;
	uint64_t since_ns;
};

void torsh_pending_children_create(struct pending_children *pending)
{
	*pending = (struct pending_children){.n = 0};
	pthread_mutex_init(&pending->lock, NULL);
}

void torsh_pending_children_destroy(struct pending_children *pending)
{
	pthread_mutex_destroy(&pending->lock);
	free(pending->children);
}

void torsh_pending_children_add(struct pending_children *pending, pid_t pid, uint64_t now_ns)
{
	if (kill(pid, 0))
		return;
	pthread_mutex_lock(&pending->lock);
	pending->children = torsh_array_reserve(pending->children, pending->n, &pending->capacity,
						sizeof(*pending->children));
	pending->children[pending->n++] = (struct pending_child){.pid = pid, .since_ns = now_ns};
	pthread_mutex_unlock(&pending->lock);
}

void torsh_pending_children_remove(struct pending_children *pending, pid_t pid)
{
	pthread_mutex_lock(&pending->lock);
	for (uint32_t i = pending->n; i-- > 0;) {
		if (pending->children[i].pid == pid)
			pending->children[i] = pending->children[--pending->n];
	}
	pthread_mutex_unlock(&pending->lock);
}

bool torsh_pending_children_any(struct pending_children *pending, uint64_t now_ns)
{
	bool is_any = false;

	pthread_mutex_lock(&pending->lock);
	for (uint32_t i = 0; i < pending->n; i++) {
		const struct pending_child *child = &pending->children[i];

		is_any |= now_ns - child->since_ns < FORK_TIMEOUT_NS && !kill(child->pid, 0);
	}
	pthread_mutex_unlock(&pending->lock);
	return is_any;
}
