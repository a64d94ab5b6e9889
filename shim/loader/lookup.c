/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* dlsym, for the names of functions that the agent interposes. */
#include <dlfcn.h>

#include "shim/allocators/allocator_calls.h"
#include "shim/cuda/cupti.h"
#include "shim/cuda/driver.h"
#include "shim/hooks.h"
#include "shim/loader/symbol.h"

static int is_interposed(const char *name, const void *caller)
{
	return name && (torsh_driver_has(name) || torsh_cupti_has(name)) &&
	       !torsh_driver_is_own(caller);
}

static int is_lacking(const char *name)
{
	return torsh_cupti_has(name) ? torsh_cupti_lacks(name) : torsh_driver_lacks(name);
}

static void *instead(const char *name, void *found)
{
	return torsh_cupti_has(name) ? torsh_cupti_instead(name, found)
				     : torsh_driver_instead(name, found);
}

/*
 * Allocators' own functions are interposed where they are looked up by name, too; and what a dlopen
 * has brought is looked at, which most programs follow by this. The return address gives the object
 * that calls: what isn't about these names must be a tail call, and RTLD_NEXT too.
 */
EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
	symbol_look_up *next = torsh_symbol_next();

	if (__builtin_expect(torsh_allocator_calls_on, 0)) {
		int i = handle != RTLD_NEXT ? torsh_allocator_calls_find(name) : -1;

		torsh_allocator_objects_recheck();
		if (i >= 0)
			return torsh_allocator_calls_instead(i, next(handle, name));
	}
	if (__builtin_expect(is_interposed(name, __builtin_return_address(0)), 0)) {
		if (handle != RTLD_NEXT)
			return instead(name, next(handle, name));
		/* It would be ours, with nothing behind it. */
		if (is_lacking(name))
			return torsh_symbol(RTLD_NEXT, name);
	}
	return next(handle, name);
}
