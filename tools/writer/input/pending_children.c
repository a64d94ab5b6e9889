/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/pending_children.h"

#include <signal.h>
#include <stdlib.h>

#include "tools/base/memory.h"

struct pending_child {
	pid_t pid;
	uint64_t since_ns;
};

void torsh_pending_children_create(struct pending_children *awaited)
{
	*awaited = (struct pending_children){.n = 0};
	pthread_mutex_init(&awaited->lock, NULL);
}

void torsh_pending_children_destroy(struct pending_children *awaited)
{
	pthread_mutex_destroy(&awaited->lock);
	free(awaited->children);
}

void torsh_pending_children_add(struct pending_children *awaited, pid_t pid, uint64_t now_ns)
{
	if (kill(pid, 0))
		return;
	pthread_mutex_lock(&awaited->lock);
	awaited->children = torsh_memory_grow(awaited->children, &awaited->capacity, awaited->n,
					      sizeof(*awaited->children));
	awaited->children[awaited->n++] = (struct pending_child){.pid = pid, .since_ns = now_ns};
	pthread_mutex_unlock(&awaited->lock);
}

void torsh_pending_children_forget(struct pending_children *awaited, pid_t pid)
{
	pthread_mutex_lock(&awaited->lock);
	for (uint32_t i = awaited->n; i-- > 0;) {
		if (awaited->children[i].pid == pid)
			awaited->children[i] = awaited->children[--awaited->n];
	}
	pthread_mutex_unlock(&awaited->lock);
}

int torsh_pending_children_any(struct pending_children *awaited, uint64_t now_ns)
{
	int is_any = 0;

	pthread_mutex_lock(&awaited->lock);
	for (uint32_t i = 0; i < awaited->n; i++) {
		const struct pending_child *child = &awaited->children[i];

		is_any |= now_ns - child->since_ns < FORK_TIMEOUT_NS && !kill(child->pid, 0);
	}
	pthread_mutex_unlock(&awaited->lock);
	return is_any;
}
