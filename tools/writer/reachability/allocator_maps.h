/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What an allocator other than glibc's has mapped. */
#ifndef TORSH_WRITER_REACHABILITY_ALLOCATOR_MAPS_H
#define TORSH_WRITER_REACHABILITY_ALLOCATOR_MAPS_H

#include <stdbool.h>

#include "tools/writer/reachability/heap_ranges.h"

struct target;

/*
 * Add the mappings that the module with the target's malloc made by mmap. glibc's own calls are not
 * recorded: it has none.
 */
void torsh_allocator_maps_add(struct heap_ranges *ranges, const struct target *target);

/* Returns whether the file is an interpreter of Python, or its library. */
bool torsh_is_python(const char *path);

/* Add the mappings that an interpreter of Python made by mmap: arenas, and stacks of its frames. */
void torsh_python_maps_add(struct heap_ranges *ranges, const struct target *target);

/*
 * Returns the path of the module that mapped the memory at the address, which stays the target's;
 * NULL: not known.
 */
const char *torsh_mapper_of(const struct target *target, uint64_t address);

#endif
