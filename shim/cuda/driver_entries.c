/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The driver's entry points that the agent interposes (shim/cuda/driver.def): exported for programs
 * linked with the driver, and returned from look-ups by name in the driver or the loader.
 */
#include "shim/cuda/driver_entries.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "shim/cuda/driver.h"
#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/objects.h"
#include "shim/loader/symbol.h"
#include "shim/ranges/session_calls.h"

#define PER_THREAD_STREAM 2u /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
#define NAME_MAX_BYTES 64u
#define NEWEST_VERSION 13020 /* the newest CUDA version with supported signatures */
/* the latest version older than cuGetProcAddress: cuMemHostRegister_v2 */
#define OTHER_SECOND_FORMS 6050

/* The file name of the object that was found; "" if it is unknown. */
static const char *object_name(const Dl_info *found)
{
	const char *slash = found->dli_fname ? strrchr(found->dli_fname, '/') : NULL;

	return slash ? slash + 1 : found->dli_fname ? found->dli_fname : "";
}

/* ---- the wrappers ---------------------------------------------------------------------------- */

static void *const wrappers[N_DRIVER_ENTRIES] = {
#define WORK(n, suffix, ...) [ENTRY_##n] = (void *)n, [ENTRY_##n##suffix] = (void *)n##suffix,
#define UNSEEN(n, ...) [ENTRY_##n] = (void *)n,
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

/* The wrapper of an entry of the table. */
static void *wrapper_of(const struct driver_entry *entry)
{
	return wrappers[entry - torsh_driver_entries];
}

static struct driver_entry *find_entry(const char *name)
{
	for (size_t i = 0; i < N_DRIVER_ENTRIES; i++)
		if (!strcmp(torsh_driver_entries[i].name, name))
			return &torsh_driver_entries[i];
	return NULL;
}

bool torsh_driver_has(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && find_entry(name);
}

/* ---- look-up by name ------------------------------------------------------------------------- */

bool torsh_driver_is_own(const void *caller)
{
	static const char *const beginnings[] = {"libcuda.so", "libcupti.so", "libnvidia-",
						 "libnvperf_", "libcudadebugger."};
	const char *object;
	Dl_info found;

	if (!dladdr(caller, &found))
		return false;
	object = object_name(&found);
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
		if (!strncmp(object, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

static struct driver_entry *find_next(const void *found)
{
	for (size_t i = 0; i < N_DRIVER_ENTRIES; i++)
		if (torsh_driver_next((enum driver_entry_id)i) == found)
			return &torsh_driver_entries[i];
	return NULL;
}

static bool is_ours(const void *found)
{
	for (size_t i = 0; i < N_DRIVER_ENTRIES; i++)
		if (wrappers[i] == found)
			return true;
	return false;
}

bool torsh_driver_lacks(const char *name)
{
	return !torsh_driver_next((enum driver_entry_id)(find_entry(name) - torsh_driver_entries));
}

void *torsh_driver_instead(const char *name, void *found)
{
	const struct driver_entry *entry;

	if (!found)
		return NULL;
	/*
	 * A lookup among all loaded objects finds the agent's first; without the driver it must
	 * fail. The error is dlsym's.
	 */
	if (is_ours(found) && torsh_driver_lacks(name))
		return torsh_symbol(RTLD_NEXT, name);
	entry = torsh_cuda_interposes_driver() ? find_next(found) : NULL;
	return entry ? wrapper_of(entry) : found;
}

/* ---- cuGetProcAddress ------------------------------------------------------------------------ */

/*
 * The version of CUDA in which a plain name began to mean its second form, with other parameters.
 */
static int second_form_since(const char *name)
{
	static const struct {
		const char *name;
		int version;
	} late[] = {{"cuGetProcAddress", 12000},
		    {"cuMemPrefetchAsync", 12020},
		    {"cuMemcpyBatchAsync", 13000},
		    {"cuMemcpy3DBatchAsync", 13000}};

	for (size_t i = 0; i < sizeof(late) / sizeof(*late); i++)
		if (!strcmp(late[i].name, name))
			return late[i].version;
	return OTHER_SECOND_FORMS;
}

/*
 * Like the driver: the newest form of a plain name in that version, the per-thread one if
 * requested.
 */
static struct driver_entry *find_form(const char *name, int version, bool is_per_thread)
{
	static const char *const versions[] = {"_v2", ""};
	static const char *const forms[] = {"_ptsz", "_ptds", ""};
	char full[NAME_MAX_BYTES];

	if (strlen(name) + sizeof("_v2_ptsz") > sizeof(full))
		return NULL;
	for (size_t v = version < second_form_since(name); v < sizeof(versions) / sizeof(*versions);
	     v++) {
		for (size_t f = is_per_thread ? 0 : 2; f < sizeof(forms) / sizeof(*forms); f++) {
			struct driver_entry *entry;

			strcpy(full, name);
			strcat(full, versions[v]);
			strcat(full, forms[f]);
			entry = find_entry(full);
			if (entry)
				return entry;
		}
	}
	return NULL;
}

/*
 * A driver may return an address other than the symbol's. One that belongs to another symbol is a
 * function with other parameters.
 */
static bool is_nameless(const void *address)
{
	Dl_info found;

	return dladdr(address, &found) && found.dli_saddr != address &&
	       !strncmp(object_name(&found), &DRIVER_LIBRARY[1], sizeof(DRIVER_LIBRARY) - 2);
}

static void replace(const char *name, void **found, int version, uint64_t flags, const void *caller)
{
	struct driver_entry *entry;

	if (!found || !*found || !name || !torsh_cuda_interposes_driver() ||
	    torsh_driver_is_own(caller))
		return;
	entry = find_next(*found);
	if (!entry && is_nameless(*found)) {
		entry = find_form(name, version, (flags & PER_THREAD_STREAM) != 0);
		/*
		 * The next version may have reused the name for a function with other parameters.
		 */
		if (entry && version > NEWEST_VERSION) {
			torsh_cuda_unrecorded(name);
			return;
		}
	}
	if (entry && torsh_driver_next((enum driver_entry_id)(entry - torsh_driver_entries)))
		*found = wrapper_of(entry);
}

EXPORT int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
	int (*next)(const char *, void **, int, uint64_t);
	int result;

	*(void **)&next = torsh_driver_next(ENTRY_cuGetProcAddress);
	if (!next)
		return DRIVER_NOT_INITIALIZED;
	result = next(name, found, version, flags);
	if (!result)
		replace(name, found, version, flags, __builtin_return_address(0));
	return result;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags,
			       int *status)
{
	int (*next)(const char *, void **, int, uint64_t, int *);
	int result;

	*(void **)&next = torsh_driver_next(ENTRY_cuGetProcAddress_v2);
	if (!next)
		return DRIVER_NOT_INITIALIZED;
	result = next(name, found, version, flags, status);
	if (!result)
		replace(name, found, version, flags, __builtin_return_address(0));
	return result;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static bool is_watched(void)
{
	return atomic_load_explicit(&torsh_driver_watch, memory_order_relaxed) == DRIVER_WATCHED;
}

/* ENDING(name, parameter, argument, fields of struct driver_ending) */
#define ENDING(name, parameter, argument, ...)                            \
	static int end_##name parameter                                   \
	{                                                                 \
		struct driver_ending ending = {__VA_ARGS__};              \
		__typeof__(name) *next = torsh_driver_next(ENTRY_##name); \
		int result;                                               \
                                                                          \
		torsh_cuda_context_ending(&ending);                       \
		result = next argument;                                   \
		torsh_cuda_context_ended(&ending, result);                \
		return result;                                            \
	}                                                                 \
	EXPORT int name parameter                                         \
	{                                                                 \
		__typeof__(name) *next = torsh_driver_next(ENTRY_##name); \
                                                                          \
		return !next	      ? DRIVER_NOT_INITIALIZED            \
		       : is_watched() ? end_##name argument               \
				      : next argument;                    \
	}
ENDING(cuCtxDestroy_v2, (void *context), (context), .context = context, .device = -1)
ENDING(cuDevicePrimaryCtxReset_v2, (int device), (device), .device = device)
ENDING(cuDevicePrimaryCtxRelease_v2, (int device), (device), .device = device, .is_release = 1)
#undef ENDING

/* ---- control --------------------------------------------------------------------------------- */

EXPORT int cuProfilerStart(void)
{
	__typeof__(cuProfilerStart) *next = torsh_driver_next(ENTRY_cuProfilerStart);

	torsh_session_switch(true);
	return next ? next() : DRIVER_NOT_INITIALIZED;
}

EXPORT int cuProfilerStop(void)
{
	__typeof__(cuProfilerStop) *next = torsh_driver_next(ENTRY_cuProfilerStop);

	torsh_session_switch(false);
	return next ? next() : DRIVER_NOT_INITIALIZED;
}
