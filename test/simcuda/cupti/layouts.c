/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The lengths of records by version, from the structs of the headers, which document when each was
 * replaced. That a newer struct begins with the older one is checked for the last fields that the
 * older has.
 */
#include "test/simcuda/cupti/layouts.h"

#include <stdbool.h>

#include "test/simcuda/engine/config.h"

/* CUPTI's version numbers; for 12, which counted versions up, also by its release: 26 or 120800. */
enum {
	COUNT_MAX = 9999,
	RELEASE_12_8 = 120800,
	CUPTI_13_0 = 130000,
	CUPTI_13_2 = 130200,
};

#define SAME(older, newer, field)                                        \
	_Static_assert(offsetof(older, field) == offsetof(newer, field), \
		       #newer " begins with " #older)

_Static_assert(offsetof(CUpti_ActivityKernel9, maxActiveClusters) ==
		       offsetof(newest_kernel, maxActiveClusters),
	       "every newer kernel record begins with that of 12.0");
_Static_assert(offsetof(CUpti_ActivityDevice4, name) == offsetof(newest_device, name), "devices");
_Static_assert(offsetof(CUpti_ActivityContext, nullStreamId) ==
		       offsetof(newest_context, nullStreamId),
	       "contexts");
_Static_assert(offsetof(CUpti_ActivityOverhead, end) == offsetof(newest_overhead, end), "overhead");
SAME(CUpti_ActivityMemcpy5, newest_copy, channelType);
SAME(CUpti_ActivityMemory3, newest_memory, memoryPoolConfig);
SAME(CUpti_ActivitySynchronization, newest_wait, cudaEventId);
SAME(CUpti_ActivityCudaEvent, newest_event, eventId);
SAME(CUpti_ActivityGraphTrace, newest_graph, streamId);
#undef SAME

int layout_version(void)
{
	return sim_config()->cupti_version ? sim_config()->cupti_version : CUPTI_API_VERSION;
}

static bool is_since_12_8(int version)
{
	return version >= (version <= COUNT_MAX ? CUPTI_12_8 : RELEASE_12_8);
}

static size_t kernel_bytes(int version)
{
#if CUPTI_API_VERSION >= 130200
	if (version >= CUPTI_13_2)
		return sizeof(CUpti_ActivityKernel11);
#endif
#if CUPTI_API_VERSION >= 130000
	if (version >= CUPTI_13_0)
		return sizeof(CUpti_ActivityKernel10);
#endif
	return sizeof(CUpti_ActivityKernel9);
}

size_t layout_bytes(CUpti_ActivityKind kind, int version)
{
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		return kernel_bytes(version);
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		return is_since_12_8(version) ? sizeof(newest_copy) : sizeof(CUpti_ActivityMemcpy5);
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		return sizeof(CUpti_ActivityMemcpyPtoP4);
	case CUPTI_ACTIVITY_KIND_MEMSET:
		return sizeof(CUpti_ActivityMemset4);
	case CUPTI_ACTIVITY_KIND_MEMORY2:
		return version >= CUPTI_13_0 ? sizeof(newest_memory)
					     : sizeof(CUpti_ActivityMemory3);
	case CUPTI_ACTIVITY_KIND_DRIVER:
	case CUPTI_ACTIVITY_KIND_RUNTIME:
		return sizeof(CUpti_ActivityAPI);
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		return sizeof(CUpti_ActivityExternalCorrelation);
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		return is_since_12_8(version) ? sizeof(newest_wait)
					      : sizeof(CUpti_ActivitySynchronization);
	case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
		return is_since_12_8(version) ? sizeof(newest_event)
					      : sizeof(CUpti_ActivityCudaEvent);
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
		return sizeof(newest_graph);
	case CUPTI_ACTIVITY_KIND_DEVICE:
		return version >= CUPTI_13_0 ? sizeof(newest_device)
					     : sizeof(CUpti_ActivityDevice4);
	case CUPTI_ACTIVITY_KIND_CONTEXT:
		return version >= CUPTI_13_0 ? sizeof(newest_context)
					     : sizeof(CUpti_ActivityContext);
	case CUPTI_ACTIVITY_KIND_STREAM:
		return sizeof(CUpti_ActivityStream);
	case CUPTI_ACTIVITY_KIND_OVERHEAD:
		return is_since_12_8(version) ? sizeof(newest_overhead)
					      : sizeof(CUpti_ActivityOverhead);
	default:
		return 0;
	}
}
