/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How long records are in which version of CUPTI, and the newest form of those that grew with the headers here. */
#ifndef SIMCUDA_LAYOUTS_H
#define SIMCUDA_LAYOUTS_H

#include <stddef.h>

#include "cupti_api.h"

struct newest_kernel {
#if CUPTI_API_VERSION >= 130200
	CUpti_ActivityKernel11 r;
#elif CUPTI_API_VERSION >= 130000
	CUpti_ActivityKernel10 r;
#else
	CUpti_ActivityKernel9 r;
#endif
};

struct newest_memory {
	CUpti_ActivityMemory4 r;
};

struct newest_device {
#if CUPTI_API_VERSION >= 130200
	CUpti_ActivityDevice6 r;
#elif CUPTI_API_VERSION >= 130000
	CUpti_ActivityDevice5 r;
#else
	CUpti_ActivityDevice4 r;
#endif
};

struct newest_context {
#if CUPTI_API_VERSION >= 130200
	CUpti_ActivityContext4 r;
#elif CUPTI_API_VERSION >= 130000
	CUpti_ActivityContext3 r;
#else
	CUpti_ActivityContext r;
#endif
};

struct newest_overhead {
#if CUPTI_API_VERSION >= 130000
	CUpti_ActivityOverhead3 r;
#else
	CUpti_ActivityOverhead r;
#endif
};

/* 0: no such record is written here. */
size_t layout_bytes(CUpti_ActivityKind kind, int version);

#endif
