/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CPython's own allocators: its domains "mem" and "object", which allocate from arenas without
 * malloc.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_MEMORY_H
#define TORSH_SHIM_CPYTHON_CPYTHON_MEMORY_H

#include <link.h>

/*
 * Interpose both domains of the interpreter in this object. Only before it has started: a domain's
 * allocator is five words, and other threads could see half an update. Returns 0, -EBUSY if it has
 * started, -ENOENT if that is impossible.
 */
int torsh_cpython_memory_watch(const struct link_map *map);

#endif
