/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The functions in which a thread looked up unwind information last. A program meets most return
 * addresses of a function one after the other, in ascending order: the next one costs only the
 * instructions since then (agent/stack/dwarf/cfi.h).
 */
#ifndef TORSH_AGENT_STACK_RECENT_FUNCTIONS_H
#define TORSH_AGENT_STACK_RECENT_FUNCTIONS_H

#include <stdint.h>

#include "agent/modules/module_watch.h"
#include "agent/stack/dwarf/cfi.h"

#define RECENT_FUNCTIONS 4u
#define RECENT_HEAD_BYTES 32u

struct recent_function {
	uint32_t n_head; /* 0: no function */
	uint8_t head[RECENT_HEAD_BYTES]; /* start of the FDE, to notice another in its place */
	struct module module;
	struct cfi_function function;
};

/* One thread's. Large: it has no place on small stacks. Zeroed, it is empty. */
struct recent_functions {
	uint32_t oldest;
	struct recent_function functions[RECENT_FUNCTIONS];
};

/* Valid until the next look-up. */
struct looked_up {
	enum module_answer answer;
	int err; /* of torsh_cfi_open or torsh_cfi_read; not for MODULE_NONE */
	const struct module *module; /* not for MODULE_NONE */
	const struct cfi_row *row; /* when err is 0 */
};

/*
 * Look up the object and the row at pc. The object is on the calling thread's stack, or unloading
 * is blocked: see torsh_modules_find.
 */
struct looked_up torsh_recent_functions_look_up(struct recent_functions *recent, uintptr_t pc);

/* Discard all: code was unmapped, or a look-up was abandoned. */
void torsh_recent_functions_clear(struct recent_functions *recent);

#endif
