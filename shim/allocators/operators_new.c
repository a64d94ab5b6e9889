/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/allocators/operators_new.h"

#include <stdbool.h>
#include <stdint.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/elf_symbol.h"

/*
 * The recording functions are in one section: calls from them are recognised by their return
 * address.
 */
#define RECORDS __attribute__((section("torsh_operators_text"), noinline))
extern const char __start_torsh_operators_text[] __attribute__((visibility("hidden")));
extern const char __stop_torsh_operators_text[] __attribute__((visibility("hidden")));

/* Current targets of the calls, and the definitions that the recording functions call. */
static union torsh_operators now, allocators;
static struct {
	const char *code;
	size_t n_bytes;
} ranges[N_OPERATORS + 1]; /* the last one: a library that is only an allocator */

static void prepare(void);

/*
 * Four functions for each operator: the exported one, and its possible targets: the first call, the
 * recording one, and the one that depends on the caller. The real operator new may throw through
 * the recording one, which holds nothing. The real delete is not a tail call there: otherwise its
 * inner calls would seem to be the program's.
 */
#define OPERATOR_NEW(name, parameters, arguments, entry)                                    \
	EXPORT void *name parameters;                                                       \
	void *name parameters                                                               \
	{                                                                                   \
		return now.by_name.name arguments;                                          \
	}                                                                                   \
	static void *first##name parameters                                                 \
	{                                                                                   \
		prepare();                                                                  \
		return now.by_name.name arguments;                                          \
	}                                                                                   \
	static RECORDS void *record##name parameters                                        \
	{                                                                                   \
		void *p = allocators.by_name.name arguments;                                \
                                                                                            \
		if (!torsh_operators_contain(HOOK_CALLER)) {                                \
			torsh_heap_allocated(p, n, entry, HOOK_FRAME);                      \
			torsh_lsan_allocated(p);                                            \
		}                                                                           \
		return p;                                                                   \
	}                                                                                   \
	static void *local##name parameters                                                 \
	{                                                                                   \
		return torsh_operators_of(HOOK_CALLER, OPERATOR##name, (const void *)&name) \
			->by_name.name arguments;                                           \
	}
#define OPERATOR_DELETE(name, parameters, arguments)                                 \
	EXPORT void name parameters;                                                 \
	void name parameters                                                         \
	{                                                                            \
		now.by_name.name arguments;                                          \
	}                                                                            \
	static void first##name parameters                                           \
	{                                                                            \
		prepare();                                                           \
		now.by_name.name arguments;                                          \
	}                                                                            \
	static RECORDS void record##name parameters                                  \
	{                                                                            \
		if (!torsh_operators_contain(HOOK_CALLER))                           \
			torsh_heap_freeing(p);                                       \
		allocators.by_name.name arguments;                                   \
		__asm__ volatile("");                                                \
	}                                                                            \
	static void local##name parameters                                           \
	{                                                                            \
		torsh_operators_of(HOOK_CALLER, OPERATOR##name, (const void *)&name) \
			->by_name.name arguments;                                    \
	}
#include "shim/allocators/operators_new.def"
#undef OPERATOR_NEW
#undef OPERATOR_DELETE

#define OPERATOR_NEW(name, parameters, arguments, entry) .name = first##name,
#define OPERATOR_DELETE(name, parameters, arguments) .name = first##name,
static union torsh_operators now = {.by_name = {
#include "shim/allocators/operators_new.def"
				    }};
#undef OPERATOR_NEW
#undef OPERATOR_DELETE

#define OPERATOR_NEW(name, parameters, arguments, entry) .name = record##name,
#define OPERATOR_DELETE(name, parameters, arguments) .name = record##name,
static const union torsh_operators recording = {.by_name = {
#include "shim/allocators/operators_new.def"
						}};
#undef OPERATOR_NEW
#undef OPERATOR_DELETE

#define OPERATOR_NEW(name, parameters, arguments, entry) .name = local##name,
#define OPERATOR_DELETE(name, parameters, arguments) .name = local##name,
static const union torsh_operators local = {.by_name = {
#include "shim/allocators/operators_new.def"
					    }};
#undef OPERATOR_NEW
#undef OPERATOR_DELETE

bool torsh_operators_contain(const void *caller)
{
	const char *code = caller;

	if (code >= __start_torsh_operators_text && code < __stop_torsh_operators_text)
		return true;
	for (size_t i = 0; i <= N_OPERATORS; i++)
		if ((uintptr_t)code - (uintptr_t)ranges[i].code < ranges[i].n_bytes)
			return true;
	return false;
}

/* Two threads in a race find the same definitions. */
static void prepare(void)
{
	ranges[N_OPERATORS].code = torsh_next_allocators_code(&ranges[N_OPERATORS].n_bytes);
	for (size_t i = 0; i < N_OPERATORS; i++) {
		size_t n_bytes = 0;
		bool records = false;
		void *found = torsh_next_at_start(torsh_operator_names[i], &n_bytes, &records);

		if (records) {
			allocators.all[i] = found;
			ranges[i].code = found;
			ranges[i].n_bytes = n_bytes;
			torsh_heap_exceptions |= HEAP_OPERATORS_RECORD;
		}
		/* Last, when its data is complete: other threads use it at once. */
		__atomic_store_n(&now.all[i],
				 !found	   ? local.all[i]
				 : records ? recording.all[i]
					   : found,
				 __ATOMIC_RELEASE);
	}
}
