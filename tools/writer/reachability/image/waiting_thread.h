/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the kernel has of a thread that waits while the others of its process are stopped. */
#ifndef TORSH_WRITER_REACHABILITY_IMAGE_WAITING_THREAD_H
#define TORSH_WRITER_REACHABILITY_IMAGE_WAITING_THREAD_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/writer/reachability/image/stopped_threads.h"

/*
 * Returns whether the thread is in its wait: false while it runs, for example a handler of a
 * signal. True if the kernel does not show that.
 */
bool torsh_waiting_thread_waits(pid_t tid, const struct waiting_thread *waiting);

/*
 * The thread has stopped before that signal; 0: with its whole process. Returns whether it stays
 * so: a handler is to run, or its process is to stop.
 */
bool torsh_waiting_thread_puts_off(pid_t tid, int signal);

#endif
