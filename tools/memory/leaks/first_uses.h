/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the code of installed packages keeps since its first use by a line of Python of the user's:
 * tables, caches, pools. Decided by the stack and by repetition, never by the package's name.
 *
 * Between the allocation and the innermost of the user's frames, which is a line of Python, is code
 * of a library. So what the user's own native code allocates stays the user's, as does what a line
 * of the user's allocates through ctypes or cffi.
 *
 * Not where a program was started and ended by _exit(): there what variables held is alive too, and
 * can't be told from caches. In a forked process that ended so python_holds.h tells it; in one that
 * a signal ended, as the workers of a pool are, nobody knows what is lost.
 *
 * A cache is filled once; what is kept again with each call is a leak. These are leaks: a stack
 * with blocks from several steps, with many blocks below a line of Python that ran as often, or
 * with blocks from more than half of the time of the process. More than LEAKS_KEPT_BYTES below one
 * line of the user's are leaks too. What a line that ran once lost in a library can't be told from
 * a cache: it is counted here.
 */
#ifndef TORSH_MEMORY_LEAKS_FIRST_USES_H
#define TORSH_MEMORY_LEAKS_FIRST_USES_H

#include "tools/base/containers/intern.h"
#include "tools/frames/address_kinds.h"
#include "tools/memory/site_reader.h"

/*
 * For each site of one process the package that keeps it since its first use, "libraries" where
 * none is named, else NULL. is_decided: sites that are left out for another reason; the result for
 * these is NULL. The caller frees the list; its texts are in names.
 */
const char **torsh_first_uses_find(struct address_kinds *kinds, const struct site_reader *sites,
				   const bool *is_decided, struct intern *names);

#endif
