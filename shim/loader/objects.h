/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What other loaded objects define, wherever they were loaded: RTLD_NEXT doesn't see those that
 * were opened with RTLD_LOCAL, as Python opens its extension modules.
 */
#ifndef TORSH_SHIM_LOADER_OBJECTS_H
#define TORSH_SHIM_LOADER_OBJECTS_H

/*
 * The first definition of name outside of this library, NULL when no object has one. Goes through
 * all objects under the loader's lock: not for a hot path, nor for a hook that the loader calls. In
 * a forked child, where nobody may be left to give that lock back, without it.
 */
void *torsh_objects_find(const char *name);

/*
 * The same among objects whose path contains this text; and among those that were loaded after this
 * library.
 */
void *torsh_objects_find_in(const char *text, const char *name);
void *torsh_objects_find_behind(const char *name);

/* Does the address lie in an object whose path contains this text? As above. */
int torsh_objects_lies_in(const char *text, const void *address);

/*
 * Does any loaded object's path contain this text? Takes no lock, for the end of a process too; 0
 * where another thread is in dlclose.
 */
int torsh_objects_has(const char *text);

struct link_map;

/*
 * The entry after this one in the loader's list, read without its lock; NULL at the end, and where
 * it isn't whole.
 */
const struct link_map *torsh_objects_next(const struct link_map *map);

/*
 * Is this entry, which once was in the loader's list, still in it? Another object may have got its
 * memory. Takes no lock, and may be asked in one's own dlclose; 0 where another thread is in
 * dlclose.
 */
int torsh_objects_is_linked(const struct link_map *map);

/*
 * Was the process made by a fork of one that had this library? Not so in a program that was
 * executed since.
 */
int torsh_objects_is_forked_child(void);

#endif
