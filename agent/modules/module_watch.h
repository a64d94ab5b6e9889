/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the loaded object at a pc, for unwinding, and detects its replacement. Lock-free and
 * async-signal-safe: uses glibc's _dl_find_object if there is one (2.35), else /proc/self/maps,
 * read for each new object.
 */
#ifndef TORSH_AGENT_MODULES_MODULE_WATCH_H
#define TORSH_AGENT_MODULES_MODULE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/modules/loaded_object.h"

struct module {
	uintptr_t start, end; /* its mapping */
	const void *link_map; /* the loader's; NULL if it has none */
	const uint8_t *eh_frame_hdr;
	bool is_start_readable; /* the first page, which usually holds the file's header */
	struct object_memory memory;
	uint64_t fingerprint; /* of its contents */
};

/* Called for each span of code that was unmapped or replaced. */
typedef void torsh_module_gone(uintptr_t start, uintptr_t end);

/*
 * Set the callback; called once, before all others. may_use_glibc is false only in tests of the
 * fallback.
 */
void torsh_modules_start(torsh_module_gone *gone, bool may_use_glibc);

/* Call gone for these addresses: what is cached for them may belong to another object. */
void torsh_modules_forget(uintptr_t start, uintptr_t end);

enum module_answer {
	MODULE_NONE, /* no object with unwind information holds pc */
	MODULE_KNOWN,
	MODULE_NEW, /* never seen before, or gone since */
};

/*
 * Find and track the object at pc; gone is called for a tracked object that it replaced. The object
 * is on the calling thread's stack, or unloading is blocked (shim/loader/unloading.h), so that no
 * thread unmaps it meanwhile.
 */
enum module_answer torsh_modules_find(uintptr_t pc, struct module *module);

/*
 * Whether an object of the same kind and size as known, which torsh_modules_find found, is at pc
 * now; false also if that can't be found out cheaply. It may be another one.
 */
bool torsh_modules_is_in_place(uintptr_t pc, const struct module *known);

/*
 * Compare all tracked objects with what is loaded now, and call gone for the missing ones. Other
 * threads may load and unload concurrently.
 */
void torsh_modules_recheck(void);

#endif
