/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Children that were forked by a process which is finished, and said no hello yet. Any thread may call.
 */
#ifndef TORSH_WRITER_AWAITED_H
#define TORSH_WRITER_AWAITED_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

/* How long a process has to say what it is of another's. */
#define FORK_PATIENCE_NS 500000000u

struct awaited_child;

struct awaited {
	pthread_mutex_t lock;
	struct awaited_child *children;
	uint32_t n, capacity;
};

void torsh_awaited_create(struct awaited *awaited);
void torsh_awaited_destroy(struct awaited *awaited);

/* Wait for a child from now on; nothing where it is gone already. */
void torsh_awaited_add(struct awaited *awaited, pid_t pid, uint64_t now_ns);

/* It said hello. */
void torsh_awaited_forget(struct awaited *awaited, pid_t pid);

/* Is one of them alive, and not waited for too long? */
int torsh_awaited_any(struct awaited *awaited, uint64_t now_ns);

#endif
