/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The modules, codes and addresses of this process, as the writer knows them: append-only tables in
 * the channel. Lock-free, async-signal-safe, any thread. Entries are never changed or removed; a
 * library that is loaded where another one was gets new entries.
 */
#ifndef TORSH_AGENT_MODULES_MODULE_REGISTRY_H
#define TORSH_AGENT_MODULES_MODULE_REGISTRY_H

#include <stdint.h>

#include "agent/wire/channel.h"

#define REGISTRY_FULL 0 /* id 0 is the pseudo-address "table full" */

/*
 * A new id for the return address ip; flags are ADDRESS_* of agent/wire/channel.h. The caller keeps
 * ids: asking twice makes two. Returns REGISTRY_FULL when the table has no room.
 */
uint32_t torsh_registry_add_address(uintptr_t ip, uint32_t flags);

/*
 * A new code of an interpreted language; the texts are pieces of the channel's text area. Returns
 * its index, or REGISTRY_NO_CODE when the table has no room. The caller keeps it, as with ids.
 */
#define REGISTRY_NO_CODE UINT32_MAX
uint32_t torsh_registry_add_code(struct channel_text name, struct channel_text file,
				 uint32_t first_line);

/* A new id for a line of Python (0: none) in a code; or REGISTRY_FULL. */
uint32_t torsh_registry_add_line(uint32_t code, uint32_t line);

/* Code was unmapped, or may have been: what was found at an address is looked for again. */
void torsh_registry_flush_modules(void);

#endif
