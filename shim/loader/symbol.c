/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/loader/symbol.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * The oldest version of dlsym in the C library; later versions are the same function. malloc's
 * family has no later ones.
 */
#if defined(__x86_64__)
#define OLDEST_VERSION "GLIBC_2.2.5"
#define ALIGNED_ALLOC_VERSION "GLIBC_2.16"
#else
#define OLDEST_VERSION "GLIBC_2.17"
#define ALIGNED_ALLOC_VERSION OLDEST_VERSION
#endif

symbol_look_up *torsh_symbol_next(void)
{
	static symbol_look_up *_Atomic known;
	symbol_look_up *next = atomic_load_explicit(&known, memory_order_relaxed);

	if (!next) {
		/*
		 * Nothing interposes dlvsym: a name that is looked up with it can't lead back here.
		 */
		*(void **)&next = dlvsym(RTLD_NEXT, "dlsym", OLDEST_VERSION);
		atomic_store_explicit(&known, next, memory_order_relaxed);
	}
	return next;
}

void *torsh_symbol(void *handle, const char *name)
{
	symbol_look_up *next = torsh_symbol_next();
	void *found = next ? next(handle, name) : NULL;

	/* Not a tail call: the lookup's caller is the agent. */
	__asm__ volatile("" : "+r"(found));
	return found;
}

/* Whether the object of one address precedes that of another in the loader's list. */
static bool is_before(const void *code, const void *other)
{
	struct link_map *map = NULL, *other_map = NULL;
	Dl_info info;

	if (!dladdr1(code, &info, (void **)&map, RTLD_DL_LINKMAP) ||
	    !dladdr1(other, &info, (void **)&other_map, RTLD_DL_LINKMAP) || map == other_map)
		return false;
	while (map && map != other_map)
		map = map->l_next;
	return map != NULL;
}

void *torsh_symbol_heap(void *handle, const char *name)
{
	/*
	 * One call finds only definitions with that version, the other all that are not hidden
	 * behind a version.
	 */
	void *versioned =
		dlvsym(handle, name,
		       strcmp(name, "aligned_alloc") ? OLDEST_VERSION : ALIGNED_ALLOC_VERSION);
	void *found = torsh_symbol(handle, name);

	if (versioned == found)
		return found;
	return versioned && (!found || is_before(versioned, found)) ? versioned : found;
}
