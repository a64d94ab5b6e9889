/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The numbers of the interpreter's tasks that have begun and not ended, by the addresses of their
 * objects. The objects aren't kept alive: another one at the address has another identity. Any
 * thread; with the GIL nobody waits, and without it the table is skipped where it is busy.
 */
#ifndef TORSH_COLLECTORS_TASKS_KNOWN_TASKS_H
#define TORSH_COLLECTORS_TASKS_KNOWN_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#define KNOWN_TASKS_MAX (3u << 14) /* at one time; others have no numbers */

struct known_task {
	const void *object, *identity;
	uint64_t number;
	uint64_t inherited; /* the request in whose context it began; 0: none */
};

/* Find the task of the object. */
bool torsh_known_tasks_find(const void *object, const void *identity, struct known_task *found);

/* Add a task, or replace that of its object. Returns false if there is no room. */
bool torsh_known_tasks_put(const struct known_task *task);

/* The task of the object has ended. */
void torsh_known_tasks_drop(const void *object);

#endif
