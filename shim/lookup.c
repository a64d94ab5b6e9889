/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* dlsym, for names before whose functions the agent stands. */
#include <dlfcn.h>

#include "shim/cupti.h"
#include "shim/driver.h"
#include "shim/hooks.h"
#include "shim/symbol.h"

static int is_to_be_looked_at(void *handle, const char *name, const void *caller)
{
	return name && (torsh_driver_has(name) || torsh_cupti_has(name)) && handle != RTLD_NEXT && torsh_cuda_stands_before_driver() &&
	       !torsh_driver_is_own(caller);
}

/* Which object asks is told by the return address: what is not about the driver must be a tail call. */
EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
	symbol_look_up *next = torsh_symbol_next();

	if (__builtin_expect(is_to_be_looked_at(handle, name, __builtin_return_address(0)), 0))
		return torsh_cupti_has(name) ? torsh_cupti_instead(handle, name, next(handle, name))
					     : torsh_driver_instead(handle, name, next(handle, name));
	return next(handle, name);
}
