/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which objects are loaded, and the ids by which the channel refers to them. The registry holds the
 * modules, codes and addresses of this process in append-only tables of the channel. Lock-free,
 * async-signal-safe, any thread. Entries are never changed or removed; a library loaded in place of
 * another gets new entries. First file of this folder; module_watch.h detects replaced objects.
 */
#ifndef TORSH_AGENT_MODULES_MODULE_REGISTRY_H
#define TORSH_AGENT_MODULES_MODULE_REGISTRY_H

#include <stdint.h>

#include "agent/wire/channel.h"

#define REGISTRY_FULL 0 /* id 0 is the pseudo-address "table full" */

struct module;

/*
 * Register the return address ip with its ADDRESS_* flags of agent/wire/channel.h. module is the
 * object that torsh_modules_find found there; NULL: it is searched for. Returns a new id at each
 * call, which the caller caches, or REGISTRY_FULL.
 */
uint32_t torsh_registry_add_address(uintptr_t ip, uint32_t flags, const struct module *module);

#define REGISTRY_NO_CODE UINT32_MAX

/*
 * Register a code of an interpreted language; its texts are pieces of the channel's text area.
 * Returns a new index at each call, which the caller caches, or REGISTRY_NO_CODE when the table is
 * full.
 */
uint32_t torsh_registry_add_code(struct channel_text name, struct channel_text file,
				 uint32_t first_line);

/* Register a line of Python (0: none) in a code. Returns a new id, or REGISTRY_FULL. */
uint32_t torsh_registry_add_line(uint32_t code, uint32_t line);

/* Flush the cache of modules by address, because code may have been unmapped. */
void torsh_registry_flush_modules(void);

#endif
