/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The modules and code addresses of this process, as the writer knows them: two append-only tables in the channel.
 * Lock-free, async-signal-safe, any thread. Entries are never changed or removed; a library that is loaded where
 * another one was gets new entries.
 */
#ifndef TORSH_AGENT_REGISTRY_H
#define TORSH_AGENT_REGISTRY_H

#include <stdint.h>

#define REGISTRY_FULL 0 /* id 0 is the pseudo-address "table full" */

/*
 * A new id for the return address ip; flags are ADDRESS_* of agent/wire/channel.h. The caller keeps ids: asking twice
 * makes two. Returns REGISTRY_FULL when the table has no room.
 */
uint32_t torsh_registry_add_address(uintptr_t ip, uint32_t flags);

/* Code was unmapped, or may have been: what was found at an address is looked for again. */
void torsh_registry_forget_modules(void);

#endif
