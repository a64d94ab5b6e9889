/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The next definitions of the driver's entry points that the agent interposes, by name. */
#include "shim/cuda/driver_entries.h"

#include "shim/loader/objects.h"

struct driver_entry torsh_driver_entries[N_DRIVER_ENTRIES] = {
#define WORK(n, suffix, ...) [ENTRY_##n] = {#n, NULL}, [ENTRY_##n##suffix] = {#n #suffix, NULL},
#define UNSEEN(n, ...) [ENTRY_##n] = {#n, NULL},
#define MEMORY UNSEEN
#include "shim/cuda/driver.def"
#include "shim/cuda/driver_memory.def"
	UNSEEN(cuGetProcAddress) UNSEEN(cuGetProcAddress_v2) UNSEEN(cuCtxDestroy_v2)
		UNSEEN(cuDevicePrimaryCtxReset_v2) UNSEEN(cuDevicePrimaryCtxRelease_v2)
			UNSEEN(cuProfilerStart) UNSEEN(cuProfilerStop)
#undef WORK
#undef UNSEEN
#undef MEMORY
};

char torsh_driver_entry_is_missing;

void *torsh_driver_look_up(struct driver_entry *entry)
{
	void *next = torsh_objects_find_behind(entry->name);

	if (next)
		torsh_driver_keep();
	if (!next && torsh_objects_find_in(DRIVER_LIBRARY, "cuInit"))
		next = &torsh_driver_entry_is_missing;
	atomic_store_explicit(&entry->next, next, memory_order_relaxed);
	return next;
}
