/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The agent's dlsym, which handles the names of functions that the agent interposes. */
#include <dlfcn.h>
#include <stdbool.h>

#include "shim/allocators/allocator_calls.h"
#include "shim/blas/blas.h"
#include "shim/cuda/cupti.h"
#include "shim/cuda/driver.h"
#include "shim/hooks.h"
#include "shim/libc/loop_sockets.h"
#include "shim/loader/symbol.h"
#include "shim/mpi/mpi.h"
#include "shim/nccl/nccl.h"
#include "shim/waits/wait_calls.h"
#include "shim/nccl/nccl_api.h"

static bool is_interposed(const char *name, const void *caller)
{
	return name && (torsh_driver_has(name) || torsh_cupti_has(name)) &&
	       !torsh_driver_is_own(caller);
}

static bool is_plugin(const char *name)
{
	return name && torsh_nccl_has(name);
}

static bool is_lacking(const char *name)
{
	return torsh_cupti_has(name) ? torsh_cupti_lacks(name) : torsh_driver_lacks(name);
}

static void *instead(const char *name, void *found)
{
	return torsh_cupti_has(name) ? torsh_cupti_instead(name, found)
				     : torsh_driver_instead(name, found);
}

/*
 * Functions of allocators, MPI, NCCL and BLAS are interposed in look-ups by name, too; and the
 * objects that a dlopen brought are checked here, because most programs call dlsym after it. The
 * return address identifies the calling object: look-ups of other names, and with RTLD_NEXT, must
 * be tail calls.
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
	if (__builtin_expect(torsh_waits_objects_on, 0))
		torsh_waits_objects_recheck();
	if (__builtin_expect(torsh_loop_sockets_on, 0))
		torsh_loop_sockets_recheck();
	if (__builtin_expect(torsh_mpi_objects_on, 0)) {
		torsh_mpi_objects_recheck();
		if (handle != RTLD_NEXT && torsh_mpi_has(name))
			return torsh_mpi_instead(name, next(handle, name));
	}
	if (__builtin_expect(torsh_nccl_objects_on, 0)) {
		torsh_nccl_objects_recheck();
		if (handle != RTLD_NEXT && torsh_nccl_api_has(name))
			return torsh_nccl_api_instead(name, next(handle, name));
	}
	if (__builtin_expect(torsh_blas_objects_on, 0)) {
		torsh_blas_objects_recheck();
		if (handle != RTLD_NEXT && torsh_blas_has(name))
			return torsh_blas_instead(name, next(handle, name));
	}
	if (__builtin_expect(is_plugin(name), 0) && handle != RTLD_NEXT)
		return torsh_nccl_instead(name, handle, next(handle, name),
					  __builtin_return_address(0));
	if (__builtin_expect(is_interposed(name, __builtin_return_address(0)), 0)) {
		if (handle != RTLD_NEXT)
			return instead(name, next(handle, name));
		/* The result would be the agent's wrapper, without a next definition. */
		if (is_lacking(name))
			return torsh_symbol(RTLD_NEXT, name);
	}
	return next(handle, name);
}
