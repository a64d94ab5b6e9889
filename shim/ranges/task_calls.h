/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests and tasks, and for which of them a thread works: defined in collectors/tasks. All keep
 * errno and never fail towards the caller. Numbers are the process's own; 0: none. Any thread.
 */
#ifndef TORSH_SHIM_RANGES_TASK_CALLS_H
#define TORSH_SHIM_RANGES_TASK_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"

/* Numbers that the program chooses are smaller. */
#define TASK_NUMBERS_HTTP (UINT64_C(1) << 40)
#define TASK_NUMBERS_OWN (UINT64_C(1) << 41)

struct task_begin {
	uint64_t number, parent;
	enum task_kind kind;
	const char *name;
	const char *task; /* its own name besides; NULL: none */
	const char *traceparent; /* as in W3C's header, of n_traceparent bytes */
	size_t n_traceparent;
	uint32_t flags; /* enum task_flag */
};

/* Returns whether tasks are recorded. Starts the agent if needed. */
bool torsh_tasks_are_wanted(void);

/* A request or task began; its thread does not work for it yet. */
void torsh_task_begin(const struct task_begin *task);

/* It ended. */
void torsh_task_end(uint64_t number);

/* From here on the calling thread works for that one. Returns for which one it did before. */
uint64_t torsh_task_turn(uint64_t number);

/* For which one the calling thread works. */
uint64_t torsh_task_current(void);

/*
 * What CPython's Context.run has begun to run on this thread, and what to turn back to:
 * torsh_task_enter fills it in.
 */
struct task_visit {
	uint64_t former, inherited;
	uint64_t task; /* the number of the object's; 0: none */
};

/* An object of the interpreter that a thread is about to go on with. */
struct task_object {
	const void *object; /* NULL: a plain call */
	const void *identity; /* with object: what another task at its address does not have */
	enum task_kind kind; /* likewise */
	uint64_t request; /* in its context; 0: none */
	uint64_t parent; /* without a request: what made it; 0: none, or not known */
};

/*
 * A thread enters a context. describe is called once for each object: it sets names that last until
 * it is called again, NULL: not known.
 */
void torsh_task_enter(struct task_visit *visit, const struct task_object *object,
		      void (*describe)(const void *object, struct task_begin *task));

/* It has left it; is_done: the task of the object has ended. */
void torsh_task_leave(const struct task_visit *visit, const struct task_object *object,
		      bool is_done);

/*
 * A work item that another thread will get: it begins here, within what the calling thread works
 * for. describe is that of torsh_task_enter, as below.
 */
void torsh_task_submit(const struct task_object *object,
		       void (*describe)(const void *object, struct task_begin *task));

/* The calling thread works for the item from here on; one that was not submitted before begins. */
void torsh_task_take(struct task_visit *visit, const struct task_object *object,
		     void (*describe)(const void *object, struct task_begin *task));

/* The item has ended. */
void torsh_task_finish(const struct task_visit *visit, const void *object);

/*
 * A greenlet that starts on the calling thread, or that goes on of which nothing is known yet: it
 * begins here, within the request of its context if that has one.
 */
void torsh_task_start(const struct task_object *object,
		      void (*describe)(const void *object, struct task_begin *task));

/* Whether the object's task has begun and not ended. */
bool torsh_task_is_known(const struct task_object *object);

/* The task of the object, if it is known, has ended; its thread already works for another one. */
void torsh_task_stop(const void *object);

/* The calling thread starts another one. */
void torsh_tasks_thread_starting(void);

/* Whether the thread is in a context that it entered. */
bool torsh_task_is_visiting(void);

/*
 * Follow the values of a context variable of CPython's, tuples that begin with a request's number.
 * The calling thread holds the interpreter's lock. Returns false if that is impossible.
 */
bool torsh_tasks_follow(void *variable);

/*
 * Have each thread turn to the request of the greenlet that it switches to. As torsh_tasks_follow.
 */
bool torsh_tasks_follow_greenlets(void);

#endif
