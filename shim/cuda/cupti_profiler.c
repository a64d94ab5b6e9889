/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cuda/cupti_profiler.h"

#include <errno.h>

#include "shim/cuda/cupti.h"
#include "shim/loader/symbol.h"

struct cupti_profiler_functions torsh_cupti_profiler;

int torsh_cupti_profiler_open(void *library)
{
#define CUPTI_PROFILER(Name, parameters)                                             \
	*(void **)&torsh_cupti_profiler.Name = torsh_symbol(library, "cupti" #Name); \
	if (!torsh_cupti_profiler.Name)                                              \
		return -ENOSYS;
#include "shim/cuda/cupti_profiler.def"
#undef CUPTI_PROFILER
	/* CUPTI opens them by name alone, and PyPI's wheels have no search path for them. */
	torsh_cupti_open_beside(torsh_cupti_profiler.ProfilerHostInitialize, "libnvperf_host.so");
	torsh_cupti_open_beside(torsh_cupti_profiler.ProfilerHostInitialize, "libnvperf_target.so");
	return 0;
}
