/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/driver.h"

#include <errno.h>

#include "shim/objects.h"

struct driver_functions torsh_driver;
_Atomic uint32_t torsh_driver_watch;

int torsh_driver_open(void)
{
	if (!torsh_objects_find_in(DRIVER_LIBRARY, "cuInit"))
		return -ENOENT;
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
