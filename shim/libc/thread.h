/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Threads of the agent in the target: the only place that starts one. */
#ifndef TORSH_SHIM_LIBC_THREAD_H
#define TORSH_SHIM_LIBC_THREAD_H

/*
 * Start a thread that no signal of the program's is delivered to and that nobody joins. It is one
 * of the C library's, for it may call libraries of others; that takes a few hundred bytes from the
 * program's heap. Returns 0 or -errno.
 */
int torsh_thread_start(void *(*run)(void *), void *argument);

/*
 * The calling thread's number in its pid namespace, as the C library remembers it: no system call,
 * which a filter may answer with the end of the process. After vfork it is still the parent's.
 */
int torsh_thread_tid(void);

/*
 * In a forked child, which a clone past the C library may have made: from then on the kernel is
 * queried.
 */
void torsh_thread_forked(void);

/* What ps shows the calling thread as; 15 bytes are kept. */
void torsh_thread_name(const char *name);

#endif
