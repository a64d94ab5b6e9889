/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What CPython itself holds to the end, which is nobody's leak. Decided by the modules of the
 * stack, because an interpreter without symbols has no names for its functions.
 */
#ifndef TORSH_MEMORY_LEAKS_PYTHON_HOLDS_H
#define TORSH_MEMORY_LEAKS_PYTHON_HOLDS_H

#include "tools/frames/address_kinds.h"

/* What torsh_python_holds_outside finds, as a kind of bookkeeping. */
#define PYTHON_HOLDS_OUTSIDE "interpreter: outside of all lines of Python"

/*
 * Returns true if all frames of the stack are the interpreter's and the C library's, and none is a
 * line of Python: it starts, reads its command line or ends. A script that ends by sys.exit(), as
 * most do, leaves some of that, which an interpreter that returns from main frees. Only for a
 * process whose lines of Python were recorded.
 */
bool torsh_python_holds_outside(struct address_kinds *kinds, uint32_t stack);

#endif
