/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * C++'s operator new and delete. Most of them call malloc and free, which are recorded: then ours
 * only jump to the next definition, and leave no frame. An allocator that brings its own (jemalloc,
 * tcmalloc, mimalloc) doesn't: there they record. A block is recorded once, though some of these
 * call malloc's family in turn.
 *
 * The next definition is the one that comes after ours among what the program was started with.
 * Where there is none the C++ run-time came with a library that was opened later, for itself: then
 * it is the one of the caller's own library (linked into it, or its own operators), else that of
 * the C++ run-time which libraries share.
 */
#ifndef TORSH_SHIM_ALLOCATORS_OPERATORS_NEW_H
#define TORSH_SHIM_ALLOCATORS_OPERATORS_NEW_H

#include <stdatomic.h>
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

int torsh_operators_contain(const void *caller);

/*
 * Is this call of malloc's family, which returns to caller, a part of an operator that records the
 * block itself, or the allocator's own?
 */
static inline int torsh_operators_is_inner(const void *caller)
{
	return __builtin_expect(torsh_heap_exceptions, 0) && torsh_operators_contain(caller);
}

#define OPERATOR_CALLERS 4096u

extern union torsh_operators torsh_operators_sets[];
/* By the return address: that, and below it in a byte which set. 0: nothing. */
extern _Atomic uint64_t torsh_operators_callers[OPERATOR_CALLERS];

static inline _Atomic uint64_t *torsh_operators_caller_slot(const void *caller)
{
	return &torsh_operators_callers[(uintptr_t)caller * 0x9e3779b97f4a7c15u >> 52];
}

const union torsh_operators *torsh_operators_find(const void *caller);

/* The definitions for code at this address, where the program was started without any. */
static inline const union torsh_operators *torsh_operators_of(const void *caller)
{
	/* Pairs with the release in torsh_operators_find. */
	uint64_t slot =
		atomic_load_explicit(torsh_operators_caller_slot(caller), memory_order_acquire);

	if (__builtin_expect(slot >> 8 == (uintptr_t)caller, 1))
		return &torsh_operators_sets[slot & 0xff];
	return torsh_operators_find(caller);
}

/* A library was closed: another may come to where its code was. */
void torsh_operators_forget_callers(void);

#endif
