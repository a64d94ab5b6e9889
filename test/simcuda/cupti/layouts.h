/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How long records are in which version of CUPTI, and the newest form of those that grew with the
 * headers here.
 */
#ifndef SIMCUDA_LAYOUTS_H
#define SIMCUDA_LAYOUTS_H

#include <stddef.h>

#include "test/simcuda/cupti/cupti.h"

#define SINCE_12_8 (CUPTI_API_VERSION >= CUPTI_12_8)

#if CUPTI_API_VERSION >= 130200
typedef CUpti_ActivityKernel11 newest_kernel;
#elif CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 newest_kernel;
#else
typedef CUpti_ActivityKernel9 newest_kernel;
#endif

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityMemory4 newest_memory;
#else
typedef CUpti_ActivityMemory3 newest_memory;
#endif

#if SINCE_12_8
typedef CUpti_ActivityMemcpy6 newest_copy;
typedef CUpti_ActivitySynchronization2 newest_wait;
typedef CUpti_ActivityCudaEvent2 newest_event;
typedef CUpti_ActivityGraphTrace2 newest_graph;
#else
typedef CUpti_ActivityMemcpy5 newest_copy;
typedef CUpti_ActivitySynchronization newest_wait;
typedef CUpti_ActivityCudaEvent newest_event;
typedef CUpti_ActivityGraphTrace newest_graph;
#endif

#if CUPTI_API_VERSION >= 130200
typedef CUpti_ActivityDevice6 newest_device;
#elif CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityDevice5 newest_device;
#else
typedef CUpti_ActivityDevice4 newest_device;
#endif

#if CUPTI_API_VERSION >= 130200
typedef CUpti_ActivityContext4 newest_context;
#elif CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityContext3 newest_context;
#else
typedef CUpti_ActivityContext newest_context;
#endif

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityOverhead3 newest_overhead;
#else
typedef CUpti_ActivityOverhead newest_overhead;
#endif

/* The version of the written records: the headers', unless it is set. */
int layout_version(void);

/* 0: no such record is written here. */
size_t layout_bytes(CUpti_ActivityKind kind, int version);

#endif
