/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/driver.h"

#include <dlfcn.h>
#include <errno.h>

#include "shim/next.h"
#include "shim/objects.h"

struct driver_functions torsh_driver;
_Atomic uint32_t torsh_driver_watch;

void torsh_driver_keep(const void *function)
{
	static _Atomic uint32_t is_kept;
	Dl_info info;

	if (!atomic_exchange_explicit(&is_kept, 1, memory_order_relaxed) && dladdr(function, &info) && info.dli_fname)
		torsh_next.dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

int torsh_driver_open(void)
{
	const void *start = torsh_objects_find_in(DRIVER_LIBRARY, "cuInit");

	if (!start)
		return -ENOENT;
	torsh_driver_keep(start);
#define DRIVER_OPTIONAL(name, parameters) *(void **)&torsh_driver.name = torsh_objects_find_in(DRIVER_LIBRARY, #name);
#define DRIVER(name, parameters)          \
	DRIVER_OPTIONAL(name, parameters) \
	if (!torsh_driver.name)           \
		return -ENOSYS;
#include "shim/driver_calls.def"
#undef DRIVER
#undef DRIVER_OPTIONAL
	return 0;
}
