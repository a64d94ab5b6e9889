/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How long records are in which version of CUPTI, and the newest form of those that grew with the headers here. */
#ifndef SIMCUDA_LAYOUTS_H
#define SIMCUDA_LAYOUTS_H

#include <stddef.h>

#include "test/simcuda/cupti/cupti.h"

#define SINCE_12_8 (CUPTI_API_VERSION >= CUPTI_12_8)

struct newest_kernel {
#if CUPTI_API_VERSION >= 130200
	CUpti_ActivityKernel11 r;
#elif CUPTI_API_VERSION >= 130000
	CUpti_ActivityKernel10 r;
#else
	CUpti_ActivityKernel9 r;
#endif
};

struct newest_copy {
#if SINCE_12_8
	CUpti_ActivityMemcpy6 r;
#else
	CUpti_ActivityMemcpy5 r;
#endif
};

struct newest_memory {
#if CUPTI_API_VERSION >= 130000
	CUpti_ActivityMemory4 r;
#else
	CUpti_ActivityMemory3 r;
#endif
};

struct newest_wait {
#if SINCE_12_8
	CUpti_ActivitySynchronization2 r;
#else
	CUpti_ActivitySynchronization r;
#endif
};

struct newest_event {
#if SINCE_12_8
	CUpti_ActivityCudaEvent2 r;
#else
	CUpti_ActivityCudaEvent r;
#endif
};

struct newest_graph {
#if SINCE_12_8
	CUpti_ActivityGraphTrace2 r;
#else
	CUpti_ActivityGraphTrace r;
#endif
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

/* The version whose records are written: that of the headers, unless it is set. */
int layout_version(void);

/* 0: no such record is written here. */
size_t layout_bytes(CUpti_ActivityKind kind, int version);

#endif
