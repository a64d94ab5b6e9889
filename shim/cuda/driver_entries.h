/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The driver's entry points that the agent interposes. shim/cuda/driver_wrappers.c defines the
 * wrappers of launches and memory calls, shim/cuda/driver_entries.c the others and the look-ups,
 * shim/cuda/driver_next.c the table of next definitions that both use.
 */
#ifndef TORSH_SHIM_CUDA_DRIVER_ENTRIES_H
#define TORSH_SHIM_CUDA_DRIVER_ENTRIES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/cuda/driver.h"
#include "shim/hooks.h"

#define WORK(name, suffix, parameters, ...) \
	EXPORT int name parameters;         \
	EXPORT int name##suffix parameters;
#define UNSEEN(name, parameters, ...) EXPORT int name parameters;
#define MEMORY(name, parameters, ...) EXPORT int name parameters;
#include "shim/cuda/driver.def"
#include "shim/cuda/driver_memory.def"
#undef WORK
#undef UNSEEN
#undef MEMORY
EXPORT int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags);
EXPORT int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags,
			       int *status);
EXPORT int cuCtxDestroy_v2(void *context);
EXPORT int cuDevicePrimaryCtxReset_v2(int device);
EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
EXPORT int cuProfilerStart(void);
EXPORT int cuProfilerStop(void);

enum driver_entry_id {
#define WORK(name, suffix, ...) ENTRY_##name, ENTRY_##name##suffix,
#define UNSEEN(name, ...) ENTRY_##name,
#define MEMORY(name, ...) ENTRY_##name,
#include "shim/cuda/driver.def"
#include "shim/cuda/driver_memory.def"
#undef WORK
#undef UNSEEN
#undef MEMORY
	ENTRY_cuGetProcAddress,
	ENTRY_cuGetProcAddress_v2,
	ENTRY_cuCtxDestroy_v2,
	ENTRY_cuDevicePrimaryCtxReset_v2,
	ENTRY_cuDevicePrimaryCtxRelease_v2,
	ENTRY_cuProfilerStart,
	ENTRY_cuProfilerStop,
	N_DRIVER_ENTRIES
};

struct driver_entry {
	const char *name;
	/* the driver's definition, or another library's after ours; NULL: not looked up yet */
	void *_Atomic next;
};

extern struct driver_entry torsh_driver_entries[N_DRIVER_ENTRIES]
	__attribute__((visibility("hidden")));

/* Takes the place of the definition of an entry point that this driver lacks. */
extern char torsh_driver_entry_is_missing __attribute__((visibility("hidden")));

/* Look up the next definition and cache it in the entry. NULL: the driver is not loaded. */
void *torsh_driver_look_up(struct driver_entry *entry);

/* The next definition; NULL: there is none. */
static inline void *torsh_driver_next(enum driver_entry_id id)
{
	void *next = atomic_load_explicit(&torsh_driver_entries[id].next, memory_order_relaxed);

	if (__builtin_expect(!next, 0))
		next = torsh_driver_look_up(&torsh_driver_entries[id]);
	return next == &torsh_driver_entry_is_missing ? NULL : next;
}

#endif
