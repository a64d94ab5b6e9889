/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which loaded object holds a pc, as far as unwinding asks; and whether it is still the one it was. Lock-free and
 * async-signal-safe: glibc's _dl_find_object where there is one (2.35), else /proc/self/maps, read on each new object.
 */
#ifndef TORSH_AGENT_MODULES_H
#define TORSH_AGENT_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/object.h"

struct module {
	uintptr_t start, end; /* its mapping */
	const void *link_map; /* NULL without _dl_find_object */
	const uint8_t *eh_frame_hdr;
	bool is_start_readable; /* the first page, where the file's header is as a rule */
	struct object_memory memory;
	uint64_t fingerprint; /* of its contents */
};

/* Called for each span of code that is gone, or was replaced. */
typedef void torsh_module_gone(uintptr_t start, uintptr_t end);

/* Once, before all else. may_ask_glibc is false only in tests of the other way. */
void torsh_modules_start(torsh_module_gone *gone, bool may_ask_glibc);

enum module_answer {
	MODULE_NONE, /* no object with unwind information holds pc */
	MODULE_KNOWN,
	MODULE_NEW, /* never seen before, or gone in between */
};

/*
 * The object that holds pc, which is remembered; gone is called for a remembered one that it has replaced. It is on the
 * calling thread's stack: nobody unmaps it meanwhile.
 */
enum module_answer torsh_modules_find(uintptr_t pc, struct module *module);

/*
 * Around torsh_modules_find, and around what reads the object that it found, where nobody proves that it is on the
 * calling thread's stack. False: another thread may unmap it now; nothing is to be read then, nor left.
 */
bool torsh_modules_enter(void);
void torsh_modules_leave(void);

/*
 * Around a dlclose. The first waits for readers of torsh_modules_enter; the second compares all remembered objects with
 * what is loaded then: gone is called for those that aren't.
 */
void torsh_modules_closing(void);
void torsh_modules_closed(void);

/* In a forked child: threads that were at it are gone. */
void torsh_modules_forked(void);

#endif
