/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Threads of the agent in the target: the only place that starts one. */
#ifndef TORSH_SHIM_LIBC_THREAD_H
#define TORSH_SHIM_LIBC_THREAD_H

/*
 * Start a detached thread with all signals blocked. It is a thread of the C library's, because it
 * may call other libraries; that takes a few hundred bytes from the program's heap. Returns 0 or
 * -errno.
 */
int torsh_thread_start(void *(*run)(void *), void *argument);

/*
 * The calling thread's tid in its PID namespace, as cached by the C library: no system call, which
 * a filter may answer by ending the process. After vfork it is still the parent's.
 */
int torsh_thread_tid(void);

/*
 * Called in a forked child, which a clone past the C library may have made: from then on the kernel
 * is queried.
 */
void torsh_thread_forked(void);

/* Set the name that ps shows for the calling thread; 15 bytes are kept. */
void torsh_thread_name(const char *name);

#endif
