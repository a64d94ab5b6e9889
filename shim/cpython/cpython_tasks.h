/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * For which request or task the threads of a CPython interpreter run, without a line of Python: the
 * C function of contextvars' Context.run, by which asyncio runs each turn of a task and
 * asyncio.to_thread its call, is replaced in the table of its type by one that calls it. The method
 * object, its name and all that a program can see of it stay.
 *
 * Seen are the steps of tasks of the C module _asyncio; what enters a context by itself (uvloop,
 * the first step of an eager task) isn't. cpython_greenlets.h has greenlets.
 *
 * Work items of a concurrent.futures.ThreadPoolExecutor are seen likewise by the methods of its
 * queue, _queue.SimpleQueue: an item begins where it is put there. The thread that gets it works
 * for it until it takes from that queue again.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_TASKS_H
#define TORSH_SHIM_CPYTHON_CPYTHON_TASKS_H

#include <stdbool.h>

#include "shim/ranges/task_calls.h"

struct cpython_task_watcher {
	/* torsh_task_enter and torsh_task_leave. */
	void (*enter)(struct task_visit *visit, const struct task_object *object,
		      void (*describe)(const void *object, struct task_begin *task));
	void (*leave)(const struct task_visit *visit, const struct task_object *object,
		      bool is_done);
	void (*impossible)(void); /* what torsh_cpython_tasks_watch requested */
	/* torsh_task_submit, torsh_task_take and torsh_task_finish. */
	void (*submit)(const struct task_object *object,
		       void (*describe)(const void *object, struct task_begin *task));
	void (*take)(struct task_visit *visit, const struct task_object *object,
		     void (*describe)(const void *object, struct task_begin *task));
	void (*finish)(const struct task_visit *visit, const void *object);
	void (*no_works)(void); /* what torsh_cpython_works_follow was to do is impossible */
};

/*
 * Follow contexts from here on; by the values of that context variable, tuples that begin with a
 * request's number, and with_tasks by the tasks of asyncio. The variable is kept alive. The calling
 * thread holds the interpreter's lock. Returns false if that is impossible.
 */
bool torsh_cpython_tasks_follow(const struct cpython_task_watcher *watcher, void *variable,
				bool with_tasks);

/*
 * The request in a context, by the variable of torsh_cpython_tasks_follow; 0: none. The calling
 * thread holds the interpreter's lock, and no exception is set.
 */
uint64_t torsh_cpython_request_in(void *context);

/*
 * Do that with tasks once the main thread executes Python code; watcher must stay. As
 * torsh_cpython_gc_watch.
 */
void torsh_cpython_tasks_watch(const struct cpython_task_watcher *watcher);

/*
 * Follow work items from here on, if their queue has been imported and the calling thread holds the
 * interpreter's lock: before a thread starts. watcher must stay.
 */
void torsh_cpython_works_follow(const struct cpython_task_watcher *watcher);

#endif
