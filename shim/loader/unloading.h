/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reads loaded objects without the loader's lock, which may be held for ever: by a thread that
 * waits for this one, or in a forked child by one that no longer exists. Objects disappear in
 * dlclose; a reader blocks dlclose meanwhile.
 */
#ifndef TORSH_SHIM_LOADER_UNLOADING_H
#define TORSH_SHIM_LOADER_UNLOADING_H

#include <stdbool.h>

/*
 * Around a read, for some microseconds, of objects that are not proved to be on the calling
 * thread's stack. False: another thread may unmap them now; read nothing, and do not call allow.
 * Never waits.
 */
bool torsh_unloading_forbid(void);

/* Ends what torsh_unloading_forbid began. */
void torsh_unloading_allow(void);

/*
 * Around a dlclose. The first waits for readers, for a limited time: a signal may have ended one.
 */
void torsh_unloading_begins(void);

/* The dlclose has returned. */
void torsh_unloading_ended(void);

/* In a forked child: drop readers of other threads, which no longer exist. */
void torsh_unloading_forked(void);

#endif
