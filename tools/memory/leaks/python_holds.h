/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What CPython itself holds to the end, which is nobody's leak. Decided by the modules of the
 * stack, because an interpreter without symbols has no names for its functions.
 */
#ifndef TORSH_MEMORY_LEAKS_PYTHON_HOLDS_H
#define TORSH_MEMORY_LEAKS_PYTHON_HOLDS_H

#include "tools/frames/address_kinds.h"
#include "tools/memory/allocation_sites.h"

/* What torsh_python_holds_outside and torsh_python_holds_in_use find, as kinds of bookkeeping. */
#define PYTHON_HOLDS_OUTSIDE "interpreter: outside of all lines of Python"
#define PYTHON_HOLDS_IN_USE "in use by Python where a forked process ended by _exit"

/*
 * Returns true if all frames of the stack are the interpreter's and the C library's, and none is a
 * line of Python: it starts, reads its command line or ends. A script that ends by sys.exit(), as
 * most do, leaves some of that, which an interpreter that returns from main frees. Only for a
 * process whose lines of Python were recorded.
 */
bool torsh_python_holds_outside(struct address_kinds *kinds, uint32_t stack);

/*
 * Returns true if a line of Python allocated all blocks of the site, its process was forked, ended
 * by _exit(), and could still reach them. So end the workers of multiprocessing and of a
 * DataLoader: their interpreter takes nothing apart. Where one ends by exit() that is freed then,
 * and no leak. A program that was started, and ends by _exit(), does it to skip that: there it is
 * shown, and so is what the user's own native code or ctypes allocated: a value left over on a
 * stack can keep it reachable. The site has its classes.
 */
bool torsh_python_holds_in_use(struct address_kinds *kinds, const struct allocation_site *site);

#endif
