/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A kernel as the driver hands it out: what CUfunction, CUkernel and their twins of the runtime
 * point to.
 */
#ifndef SIMCUDA_FUNCTION_H
#define SIMCUDA_FUNCTION_H

#include <stddef.h>
#include <stdint.h>

enum { SIM_FUNCTION_MAGIC = 0x46756e63 };

/* Lives as long as the process: what a module's unloading leaves is a stale name. */
struct sim_function {
	uint32_t magic;
	char *name;
	struct drv_module *module;
	int max_dynamic_shared_bytes, carveout;
};

/* Its name, or NULL for what is no function. */
static inline const char *sim_function_name(const void *handle)
{
	const struct sim_function *function = handle;

	return function && function->magic == SIM_FUNCTION_MAGIC ? function->name : NULL;
}

#endif
