/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds objects in /proc/self/maps by plain system calls, for C libraries without _dl_find_object.
 * A call takes about 100 us.
 */
#ifndef TORSH_AGENT_MODULES_MAPS_H
#define TORSH_AGENT_MODULES_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/modules/module_watch.h"

struct text;

/*
 * Find the object at pc that has unwind information; its link_map is NULL if the loader has none.
 * After torsh_maps_forbid, and if /proc can't be read, only objects in the loader's list are found.
 * Async-signal-safe.
 */
bool torsh_maps_find(uintptr_t pc, struct module *module);

/*
 * From now on torsh_maps_find opens no file, because a filter on system calls may end the program
 * for it. Any thread.
 */
void torsh_maps_forbid(void);

/*
 * The same with the list of mappings in fd, which is read to its end: for torsh_maps_find and
 * tests.
 */
bool torsh_maps_find_in(int fd, uintptr_t pc, struct module *module);

/* Append the path of the file mapped at address; nothing if there is none or it doesn't fit. */
void torsh_maps_put_path(uintptr_t address, struct text *path);

#endif
