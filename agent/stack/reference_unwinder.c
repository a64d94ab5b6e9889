/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* libunwind as the reference unwinder. */
#include "agent/stack/reference_unwinder.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "agent/producer/counter.h"
#include "agent/stack/dwarf/cfi.h"
#include "agent/stack/unwind_rules.h"
#include "shim/loader/symbol.h"

struct cursor {
	uintptr_t opaque[LIBUNWIND_CURSOR_WORDS];
};

static struct {
	int (*get_context)(ucontext_t *context);
	int (*init_local)(struct cursor *cursor, ucontext_t *context);
	int (*step)(struct cursor *cursor);
	int (*get_register)(struct cursor *cursor, int number, uintptr_t *value);
	void (*flush_cache)(void *space, uintptr_t low, uintptr_t high);
	void **local_space;
} unwind;

struct reference_difference torsh_reference_first_difference;
static _Atomic uint32_t has_difference;
static _Atomic uint32_t last_generation;

/*
 * libunwind maps memory under its own lock, through the agent's wrapper: such a capture is not
 * checked.
 */
static _Thread_local bool is_walking;

int torsh_reference_open(void)
{
	void *(*open)(const char *path, int mode);
	void *library;

	if (unwind.step)
		return 0;
	/* Not the agent's own wrapper, which is above the agent. */
	*(void **)&open = torsh_symbol(RTLD_NEXT, "dlopen");
	library = open ? open("libunwind.so.8", RTLD_LOCAL | RTLD_NOW) : NULL;
	if (!library)
		return -ENOENT;
	*(void **)&unwind.get_context = torsh_symbol(library, "_U" LIBUNWIND_CPU "_getcontext");
	*(void **)&unwind.init_local = torsh_symbol(library, "_UL" LIBUNWIND_CPU "_init_local");
	*(void **)&unwind.get_register = torsh_symbol(library, "_UL" LIBUNWIND_CPU "_get_reg");
	*(void **)&unwind.flush_cache = torsh_symbol(library, "_U" LIBUNWIND_CPU "_flush_cache");
	unwind.local_space = torsh_symbol(library, "_UL" LIBUNWIND_CPU "_local_addr_space");
	*(void **)&unwind.step = torsh_symbol(library, "_UL" LIBUNWIND_CPU "_step");
	if (unwind.init_local && unwind.get_register && unwind.step)
		return 0;
	unwind.step = NULL;
	return -ENOENT;
}

/* dlclose doesn't flush libunwind's cache of unwind rules. */
static void flush_when_code_changed(void)
{
	uint32_t generation = atomic_load(&torsh_unwind_rules_generation);

	if (atomic_exchange(&last_generation, generation) != generation && unwind.flush_cache &&
	    unwind.local_space)
		unwind.flush_cache(*unwind.local_space, 0, 0);
}

static uint32_t walk(uintptr_t sp, uintptr_t *ips)
{
	struct cursor cursor;
	ucontext_t context;
	uintptr_t at = 0;
	uint32_t n = 0;

	flush_when_code_changed();
	if (torsh_unwind_context(unwind.get_context, &context) ||
	    unwind.init_local(&cursor, &context))
		return 0;
	do {
		if (unwind.get_register(&cursor, CFI_SP, &at))
			return 0;
	} while (at != sp && unwind.step(&cursor) > 0);
	if (at != sp)
		return 0;
	/* A return address of 0 ends a stack; libunwind 1.8 treats it as a frame. */
	while (n < REFERENCE_MAX_FRAMES && !unwind.get_register(&cursor, CFI_IP, &ips[n]) &&
	       ips[n]) {
		n++;
		if (unwind.step(&cursor) <= 0)
			break;
	}
	return n;
}

uint32_t torsh_reference_walk(uintptr_t sp, uintptr_t *ips)
{
	uint32_t n;

	if (is_walking)
		return REFERENCE_BUSY;
	is_walking = true;
	n = walk(sp, ips);
	is_walking = false;
	return n;
}

static void save_difference(uintptr_t *to, const uintptr_t *from, uint32_t n)
{
	memcpy(to, from,
	       (n < REFERENCE_DIFFERENCE_FRAMES ? n : REFERENCE_DIFFERENCE_FRAMES) * sizeof(*to));
}

void torsh_reference_compare(const uintptr_t *ours, uint32_t n_ours, const uintptr_t *reference,
			     uint32_t n_reference, bool is_cut)
{
	uint32_t unset = 0;

	if (n_reference == REFERENCE_BUSY)
		return;
	torsh_count(COUNTER_captures_checked);
	if ((n_ours == n_reference || (is_cut && n_ours < n_reference)) &&
	    memcmp(ours, reference, n_ours * sizeof(*ours)) == 0)
		return;
	torsh_count(COUNTER_captures_differing);
	if (!atomic_compare_exchange_strong(&has_difference, &unset, 1))
		return;
	torsh_reference_first_difference.n_ours = n_ours;
	torsh_reference_first_difference.n_reference = n_reference;
	save_difference(torsh_reference_first_difference.ours, ours, n_ours);
	save_difference(torsh_reference_first_difference.reference, reference, n_reference);
}
