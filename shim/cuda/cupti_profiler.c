/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cuda/cupti_profiler.h"

#include <errno.h>

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
	return 0;
}
