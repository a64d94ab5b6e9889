/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reading loaded objects without the loader's lock, which may be held for ever: by a thread that
 * waits for this one, or in a forked child by one that is gone. Objects disappear in dlclose;
 * whoever reads keeps others from it meanwhile.
 */
#ifndef TORSH_SHIM_LOADER_UNLOADING_H
#define TORSH_SHIM_LOADER_UNLOADING_H

#include <stdbool.h>

/*
 * Around reading what nobody proves to be on the calling thread's stack, for some microseconds.
 * False: another thread may unmap it now; nothing is to be read then, nor allowed again. Never
 * waits.
 */
bool torsh_unloading_forbid(void);
void torsh_unloading_allow(void);

/*
 * Around a dlclose. The first waits for those who forbade it, but not for long: a signal may have
 * taken one away.
 */
void torsh_unloading_begins(void);
void torsh_unloading_ended(void);

/* In a forked child: threads that were at it are gone. */
void torsh_unloading_forked(void);

#endif
