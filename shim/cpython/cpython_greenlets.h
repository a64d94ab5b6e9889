/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which greenlet each thread runs, without a line of Python and without greenlet.settrace, which
 * the program may want: the methods switch and throw of the package greenlet, from 2.0 on, and
 * their like in the table of its C API, by which gevent switches, are replaced by ones that call
 * them.
 *
 * A thread turns to a greenlet where that starts, and back to what it was for where a call of
 * switch or throw returns: in the greenlet that made the call. A greenlet that ended has made none,
 * so the next one that goes on sees it. One that goes on only to be freed, by GreenletExit, counts
 * for what freed it.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_GREENLETS_H
#define TORSH_SHIM_CPYTHON_CPYTHON_GREENLETS_H

#include <stdbool.h>

#include "shim/ranges/task_calls.h"

struct cpython_greenlet_watcher {
	/* torsh_task_start, torsh_task_is_known, torsh_task_stop, _current and _turn. */
	void (*start)(const struct task_object *object,
		      void (*describe)(const void *object, struct task_begin *task));
	bool (*is_known)(const struct task_object *object);
	void (*stop)(const void *object);
	uint64_t (*current)(void);
	uint64_t (*turn)(uint64_t number);
	void (*impossible)(void); /* with tasks: this version of the package isn't known */
};

/*
 * Follow greenlets from here on, with_tasks each as a task of its own, if the package has been
 * imported. The calling thread holds the interpreter's lock. watcher must stay. Returns false if it
 * hasn't been imported, or that is impossible.
 */
bool torsh_cpython_greenlets_follow(const struct cpython_greenlet_watcher *watcher,
				    bool with_tasks);

/*
 * Do that with tasks once the main thread executes Python code, and whenever the package is
 * imported later. As torsh_cpython_gc_watch.
 */
void torsh_cpython_greenlets_watch(const struct cpython_greenlet_watcher *watcher);

/* A library is about to be opened. */
void torsh_cpython_greenlets_loading(const char *path);

#endif
