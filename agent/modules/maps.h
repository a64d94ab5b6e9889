/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Objects found in /proc/self/maps by plain system calls: for C libraries without _dl_find_object.
 * Some 100 us a call.
 */
#ifndef TORSH_AGENT_MODULES_MAPS_H
#define TORSH_AGENT_MODULES_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/modules/module_watch.h"

struct text;

/*
 * The object mapped at pc that has unwind information; its link_map is NULL where the loader has
 * none. After torsh_maps_forbid, and where /proc can't be read, only an object of the loader's list
 * is found.
 */
bool torsh_maps_find(uintptr_t pc, struct module *module);

/*
 * From here on torsh_maps_find opens no file: a filter on system calls may end the program for it.
 * Any thread.
 */
void torsh_maps_forbid(void);

/* The same with the list of mappings that fd has: for torsh_maps_find, and for tests. */
bool torsh_maps_find_in(int fd, uintptr_t pc, struct module *module);

/*
 * Put the path of the file that is mapped at address; nothing where none is, or where it doesn't
 * fit.
 */
void torsh_maps_put_path(uintptr_t address, struct text *path);

#endif
