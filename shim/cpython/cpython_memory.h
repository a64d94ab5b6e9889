/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CPython's own allocators: its domains "mem" and "object", which give out pieces of arenas that
 * malloc never sees.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_MEMORY_H
#define TORSH_SHIM_CPYTHON_CPYTHON_MEMORY_H

#include <link.h>

/*
 * Stand before both domains of the interpreter that is this object. Only before it has begun: what
 * serves a domain is five words that other threads could see half of. Returns 0, -EBUSY when it
 * has, -ENOENT when it can't be done.
 */
int torsh_cpython_memory_watch(const struct link_map *map);

#endif
