/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* shim/cuda/cupti.h against CUPTI's own headers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#if !__has_include(<cupti.h>)
int main(void)
{
	puts("there are no headers of CUPTI (PyPI's wheels below build/venv, or CUDA_HOME)");
	return 77;
}
#else
#include <cupti.h>

#include "agent/wire/event.h"
#include "shim/cuda/cupti.h"

#define SAME(ours, our_field, theirs, their_field)                                               \
	_Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field),               \
		       #theirs "." #their_field);                                                \
	_Static_assert(sizeof(((ours *)0)->our_field) <= sizeof(((theirs *)0)->their_field) * 3, \
		       "size of " #their_field)

#define KERNEL(Theirs)                                                                 \
	SAME(struct cupti_kernel, kind, Theirs, kind);                                 \
	SAME(struct cupti_kernel, registers, Theirs, registersPerThread);              \
	SAME(struct cupti_kernel, start, Theirs, start);                               \
	SAME(struct cupti_kernel, end, Theirs, end);                                   \
	SAME(struct cupti_kernel, device, Theirs, deviceId);                           \
	SAME(struct cupti_kernel, context, Theirs, contextId);                         \
	SAME(struct cupti_kernel, stream, Theirs, streamId);                           \
	SAME(struct cupti_kernel, grid, Theirs, gridX);                                \
	SAME(struct cupti_kernel, block, Theirs, blockX);                              \
	SAME(struct cupti_kernel, static_shared_bytes, Theirs, staticSharedMemory);    \
	SAME(struct cupti_kernel, dynamic_shared_bytes, Theirs, dynamicSharedMemory);  \
	SAME(struct cupti_kernel, local_bytes_a_thread, Theirs, localMemoryPerThread); \
	SAME(struct cupti_kernel, correlation, Theirs, correlationId);                 \
	SAME(struct cupti_kernel, name, Theirs, name);                                 \
	SAME(struct cupti_kernel, node, Theirs, graphNodeId);                          \
	SAME(struct cupti_kernel, graph, Theirs, graphId)

#define SPAN(ours, Theirs)                              \
	SAME(ours, bytes, Theirs, bytes);               \
	SAME(ours, start, Theirs, start);               \
	SAME(ours, end, Theirs, end);                   \
	SAME(ours, device, Theirs, deviceId);           \
	SAME(ours, context, Theirs, contextId);         \
	SAME(ours, stream, Theirs, streamId);           \
	SAME(ours, correlation, Theirs, correlationId); \
	SAME(ours, node, Theirs, graphNodeId);          \
	SAME(ours, graph, Theirs, graphId)

#define COPY(ours, Theirs)                       \
	SPAN(ours, Theirs);                      \
	SAME(ours, copy_kind, Theirs, copyKind); \
	SAME(ours, from, Theirs, srcKind);       \
	SAME(ours, to, Theirs, dstKind);         \
	SAME(ours, flags, Theirs, flags)

KERNEL(CUpti_ActivityKernel8);
KERNEL(CUpti_ActivityKernel9);
COPY(struct cupti_copy, CUpti_ActivityMemcpy5);
COPY(struct cupti_peer_copy, CUpti_ActivityMemcpyPtoP4);
SAME(struct cupti_peer_copy, to_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
SPAN(struct cupti_memset, CUpti_ActivityMemset4);
SAME(struct cupti_memset, value, CUpti_ActivityMemset4, value);
SAME(struct cupti_memset, flags, CUpti_ActivityMemset4, flags);
SAME(struct cupti_memset, memory, CUpti_ActivityMemset4, memoryKind);
#if CUPTI_API_VERSION >= 130000
KERNEL(CUpti_ActivityKernel10);
COPY(struct cupti_copy, CUpti_ActivityMemcpy6);
#endif

#define DEVICE(Theirs)                                                                        \
	SAME(struct cupti_device, bandwidth_kb, Theirs, globalMemoryBandwidth);               \
	SAME(struct cupti_device, memory_bytes, Theirs, globalMemorySize);                    \
	SAME(struct cupti_device, l2_bytes, Theirs, l2CacheSize);                             \
	SAME(struct cupti_device, warp_threads, Theirs, numThreadsPerWarp);                   \
	SAME(struct cupti_device, clock_khz, Theirs, coreClockRate);                          \
	SAME(struct cupti_device, multiprocessors, Theirs, numMultiprocessors);               \
	SAME(struct cupti_device, multiprocessor_warps, Theirs, maxWarpsPerMultiprocessor);   \
	SAME(struct cupti_device, multiprocessor_blocks, Theirs, maxBlocksPerMultiprocessor); \
	SAME(struct cupti_device, multiprocessor_shared_bytes, Theirs,                        \
	     maxSharedMemoryPerMultiprocessor);                                               \
	SAME(struct cupti_device, multiprocessor_registers, Theirs,                           \
	     maxRegistersPerMultiprocessor);                                                  \
	SAME(struct cupti_device, block_registers, Theirs, maxRegistersPerBlock);             \
	SAME(struct cupti_device, block_shared_bytes, Theirs, maxSharedMemoryPerBlock);       \
	SAME(struct cupti_device, block_threads, Theirs, maxThreadsPerBlock);                 \
	SAME(struct cupti_device, capability_major, Theirs, computeCapabilityMajor);          \
	SAME(struct cupti_device, capability_minor, Theirs, computeCapabilityMinor);          \
	SAME(struct cupti_device, device, Theirs, id);                                        \
	SAME(struct cupti_device, uuid, Theirs, uuid);                                        \
	SAME(struct cupti_device, name, Theirs, name)

#define WAIT(Theirs)                                                 \
	SAME(struct cupti_wait, wait, Theirs, type);                 \
	SAME(struct cupti_wait, start, Theirs, start);               \
	SAME(struct cupti_wait, end, Theirs, end);                   \
	SAME(struct cupti_wait, correlation, Theirs, correlationId); \
	SAME(struct cupti_wait, context, Theirs, contextId);         \
	SAME(struct cupti_wait, stream, Theirs, streamId);           \
	SAME(struct cupti_wait, event, Theirs, cudaEventId)

#define OVERHEAD(Theirs)                                             \
	SAME(struct cupti_overhead, overhead, Theirs, overheadKind); \
	SAME(struct cupti_overhead, start, Theirs, start);           \
	SAME(struct cupti_overhead, end, Theirs, end)

#define CONTEXT(Theirs)                                         \
	SAME(struct cupti_context, context, Theirs, contextId); \
	SAME(struct cupti_context, device, Theirs, deviceId);   \
	SAME(struct cupti_context, null_stream, Theirs, nullStreamId)

DEVICE(CUpti_ActivityDevice4);
DEVICE(CUpti_ActivityDevice5);
WAIT(CUpti_ActivitySynchronization);
OVERHEAD(CUpti_ActivityOverhead);
CONTEXT(CUpti_ActivityContext);
#if CUPTI_API_VERSION >= 130200
DEVICE(CUpti_ActivityDevice6);
WAIT(CUpti_ActivitySynchronization2);
OVERHEAD(CUpti_ActivityOverhead3);
CONTEXT(CUpti_ActivityContext4);
#endif
SAME(struct cupti_stream, context, CUpti_ActivityStream, contextId);
SAME(struct cupti_stream, stream, CUpti_ActivityStream, streamId);
SAME(struct cupti_stream, priority, CUpti_ActivityStream, priority);
SAME(struct cupti_stream, flag, CUpti_ActivityStream, flag);

SAME(struct cupti_resource, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME(struct cupti_graph, node, CUpti_GraphData, node);
SAME(struct cupti_graph, original_node, CUpti_GraphData, originalNode);
SAME(struct cupti_graph, node_type, CUpti_GraphData, nodeType);

SAME(struct cupti_call, site, CUpti_CallbackData, callbackSite);
SAME(struct cupti_call, function, CUpti_CallbackData, functionName);
SAME(struct cupti_call, result, CUpti_CallbackData, functionReturnValue);
SAME(struct cupti_call, context_id, CUpti_CallbackData, contextUid);
SAME(struct cupti_call, slot, CUpti_CallbackData, correlationData);
SAME(struct cupti_call, correlation, CUpti_CallbackData, correlationId);

static void numbers_are_those_of_the_headers(void **state)
{
	(void)state;
	assert_int_equal(CUPTI_DONE, CUPTI_SUCCESS);
	assert_int_equal(CUPTI_END_OF_BUFFER, CUPTI_ERROR_MAX_LIMIT_REACHED);
	assert_int_equal(CUPTI_SUBSCRIBER_TAKEN, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	assert_int_equal(CUPTI_KIND_COPY, CUPTI_ACTIVITY_KIND_MEMCPY);
	assert_int_equal(CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
	assert_int_equal(CUPTI_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	assert_int_equal(CUPTI_KIND_PEER_COPY, CUPTI_ACTIVITY_KIND_MEMCPY2);
	assert_int_equal(CUPTI_KIND_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE);
	assert_int_equal(CUPTI_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
	assert_int_equal(CUPTI_KIND_STREAM, CUPTI_ACTIVITY_KIND_STREAM);
	assert_int_equal(CUPTI_KIND_WAIT, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
	assert_int_equal(CUPTI_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
	assert_int_equal(CUPTI_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
	assert_int_equal(CUPTI_NODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
	assert_int_equal(CUPTI_NODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
	assert_int_equal(WAIT_FOR_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
	assert_int_equal(WAIT_STREAM_FOR_EVENT,
			 CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
	assert_int_equal(WAIT_FOR_CONTEXT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
	assert_int_equal(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
	assert_int_equal(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
	assert_int_equal(CUPTI_ENTER, CUPTI_API_ENTER);
	assert_int_equal(CUPTI_EXIT, CUPTI_API_EXIT);
	assert_int_equal(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	assert_int_equal(CUPTI_ALIGNMENT, ACTIVITY_RECORD_ALIGNMENT);
	assert_int_equal(CUPTI_FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
	assert_int_equal(CUPTI_FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
	assert_int_equal(COPY_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
	assert_int_equal(COPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
	assert_int_equal(MEMORY_MANAGED_STATIC, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_the_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
