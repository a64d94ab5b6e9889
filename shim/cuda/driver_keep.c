/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Keeps the driver's library loaded once its functions are cached. */
#include <dlfcn.h>
#include <stdatomic.h>

#include "shim/cuda/driver.h"
#include "shim/libc/next.h"
#include "shim/loader/objects.h"

void torsh_driver_keep(void)
{
	static _Atomic uint32_t is_kept;
	const void *start;
	Dl_info info;

	if (atomic_load_explicit(&is_kept, memory_order_relaxed))
		return;
	start = torsh_objects_find_in(DRIVER_LIBRARY, "cuInit");
	if (!start || !dladdr(start, &info) || !info.dli_fname)
		return;
	torsh_next.dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	atomic_store_explicit(&is_kept, 1, memory_order_relaxed);
}
