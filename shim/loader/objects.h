/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Definitions in other loaded objects, however they were loaded: RTLD_NEXT does not search those
 * opened with RTLD_LOCAL, as Python opens its extension modules.
 */
#ifndef TORSH_SHIM_LOADER_OBJECTS_H
#define TORSH_SHIM_LOADER_OBJECTS_H

#include <stdbool.h>

/*
 * The first definition of name outside of this library, or NULL. Walks all objects under the
 * loader's lock: not for a hot path, nor for a function that the loader calls. In a forked child
 * the lock is not taken: its holder may not exist.
 */
void *torsh_objects_find(const char *name);

/* Like torsh_objects_find, only in objects with this text in their path. */
void *torsh_objects_find_in(const char *text, const char *name);

/* Like torsh_objects_find; NULL, too, where another object has a definition besides. */
void *torsh_objects_find_only(const char *name);

/* Like torsh_objects_find, only in objects that were loaded after this library. */
void *torsh_objects_find_behind(const char *name);

/*
 * Whether the address is in an object with this text in its path. Takes the lock as
 * torsh_objects_find does.
 */
bool torsh_objects_lies_in(const char *text, const void *address);

/*
 * Whether any loaded object has this text in its path. Takes no lock, so that it also works at the
 * end of a process; 0 while another thread is in dlclose.
 */
bool torsh_objects_has(const char *text);

struct link_map;

/*
 * The loader's entry of the object with this code, NULL if there is none. Lock-free with glibc 2.35
 * and later, so that a forked child may call it.
 */
const struct link_map *torsh_objects_of(const void *code);

/*
 * The entry after this one in the loader's list, read without its lock; NULL at the end, and before
 * an incomplete entry.
 */
const struct link_map *torsh_objects_next(const struct link_map *map);

/*
 * Whether this entry is still in the loader's list. Another object may have reused its memory.
 * Takes no lock, and may be called within dlclose; 0 while another thread is in dlclose.
 */
bool torsh_objects_is_linked(const struct link_map *map);

/*
 * Whether the process was forked from one that had this library, and has not executed a program
 * since.
 */
bool torsh_objects_is_forked_child(void);

#endif
