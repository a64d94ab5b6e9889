/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * C++'s operator new and delete. Most definitions call malloc and free, which are recorded: then
 * the agent's only jump to the next definition and leave no frame. An allocator with its own
 * operators (jemalloc, tcmalloc, mimalloc) doesn't call them: then the agent's operators record. A
 * block is recorded once, even if some of these call malloc's family in turn.
 *
 * The next definition is the one after the agent's among the libraries with which the program was
 * started. If there is none, the C++ run-time came with a library that was opened later: then it is
 * the definition of the caller's own library (linked into it, or its own operators), else that of
 * the shared C++ run-time.
 */
#ifndef TORSH_SHIM_ALLOCATORS_OPERATORS_NEW_H
#define TORSH_SHIM_ALLOCATORS_OPERATORS_NEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/hooks.h"

enum torsh_operator {
#define OPERATOR_NEW(name, parameters, arguments, entry) OPERATOR##name,
#define OPERATOR_DELETE(name, parameters, arguments) OPERATOR##name,
#include "shim/allocators/operators_new.def"
#undef OPERATOR_NEW
#undef OPERATOR_DELETE
	N_OPERATORS
};

union torsh_operators {
	struct {
#define OPERATOR_NEW(name, parameters, arguments, entry) void *(*name)parameters;
#define OPERATOR_DELETE(name, parameters, arguments) void(*name) parameters;
#include "shim/allocators/operators_new.def"
#undef OPERATOR_NEW
#undef OPERATOR_DELETE
	} by_name;
	void *all[N_OPERATORS];
};

extern const char *const torsh_operator_names[N_OPERATORS];

/* The slow path of torsh_operators_is_inner. */
bool torsh_operators_contain(const void *caller);

/*
 * Whether this call of malloc's family, which returns to caller, is part of an operator that
 * records the block itself, or comes from the allocator.
 */
static inline bool torsh_operators_is_inner(const void *caller)
{
	return __builtin_expect(torsh_heap_exceptions, 0) && torsh_operators_contain(caller);
}

#define OPERATOR_CALLERS 4096u

extern union torsh_operators torsh_operators_sets[];
/*
 * Cache by page of code, which belongs to one object: the page's number, and the number of the set
 * in the low byte. 0: empty.
 */
extern _Atomic uint64_t torsh_operators_callers[OPERATOR_CALLERS];

static inline uint64_t torsh_operators_page(const void *caller)
{
	return (uintptr_t)caller / 4096u;
}

static inline _Atomic uint64_t *torsh_operators_caller_slot(const void *caller)
{
	return &torsh_operators_callers[torsh_operators_page(caller) * 0x9e3779b97f4a7c15u >> 52];
}

/*
 * Slow path of torsh_operators_of: looks the set up by the caller's object. Binds its calls of this
 * operator to the definition itself (operators_new_bind.h), else caches the set.
 */
const union torsh_operators *torsh_operators_find(const void *caller, enum torsh_operator which,
						  const void *exported);

/*
 * The definitions for code at this address, if the program was started without any. exported: the
 * agent's function that was called.
 */
static inline const union torsh_operators *
torsh_operators_of(const void *caller, enum torsh_operator which, const void *exported)
{
	/* Pairs with the release in torsh_operators_find. */
	uint64_t slot =
		atomic_load_explicit(torsh_operators_caller_slot(caller), memory_order_acquire);

	if (__builtin_expect(slot >> 8 == torsh_operators_page(caller), 1))
		return &torsh_operators_sets[slot & 0xff];
	return torsh_operators_find(caller, which, exported);
}

/* A library was closed: another may be loaded in its place. */
void torsh_operators_forget_callers(void);

#endif
