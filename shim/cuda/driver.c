/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cuda/driver.h"

#include <errno.h>

#include "agent/wire/event.h"
#include "shim/loader/objects.h"

struct driver_functions torsh_driver;
_Atomic uint32_t torsh_driver_watch;

int torsh_driver_open(void)
{
	if (!torsh_objects_find_in(DRIVER_LIBRARY, "cuInit"))
		return -ENOENT;
#define DRIVER_OPTIONAL(name, parameters) \
	*(void **)&torsh_driver.name = torsh_objects_find_in(DRIVER_LIBRARY, #name);
#define DRIVER(name, parameters)          \
	DRIVER_OPTIONAL(name, parameters) \
	if (!torsh_driver.name)           \
		return -ENOSYS;
#include "shim/cuda/driver_calls.def"
#undef DRIVER
#undef DRIVER_OPTIONAL
	return 0;
}

uint32_t torsh_driver_direction(uint32_t from, uint32_t to)
{
	static const uint32_t directions[4][4] = {
		[DRIVER_HOST] = {[DRIVER_HOST] = COPY_HTOH,
				 [DRIVER_DEVICE] = COPY_HTOD,
				 [DRIVER_ARRAY] = COPY_HTOA},
		[DRIVER_DEVICE] = {[DRIVER_HOST] = COPY_DTOH,
				   [DRIVER_DEVICE] = COPY_DTOD,
				   [DRIVER_ARRAY] = COPY_DTOA},
		[DRIVER_ARRAY] = {[DRIVER_HOST] = COPY_ATOH,
				  [DRIVER_DEVICE] = COPY_ATOD,
				  [DRIVER_ARRAY] = COPY_ATOA},
	};

	return from < 4 && to < 4 ? directions[from][to] : COPY_UNKNOWN;
}
