/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A thread of the agent's own in the target: it takes no signal, and is waited for by nobody. */
#ifndef TORSH_SHIM_THREAD_H
#define TORSH_SHIM_THREAD_H

/* The C library's function is found at run time: what never starts a thread does not need it. Returns 0 or -errno. */
int torsh_thread_start(void *(*run)(void *argument), void *argument);

#endif
