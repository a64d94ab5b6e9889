/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/memory/cuda_memory_info.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "agent/process/callbacks.h"
#include "agent/process/process.h"
#include "collectors/cuda/cuda.h"
#include "shim/cuda/driver.h"
#include "shim/hooks.h"

#define N_DEVICES 64u

static _Atomic uint32_t is_ready; /* the driver's functions were found */

static _Atomic uint64_t devices_seen, pools_seen; /* a bit for each device */

_Thread_local bool torsh_cuda_memory_info_is_querying;

void torsh_cuda_memory_info_begin(void)
{
	atomic_store_explicit(&is_ready, !torsh_driver_open(), memory_order_release);
}

void torsh_cuda_memory_info_see(uint32_t device, bool is_of_pool)
{
	if (device >= N_DEVICES)
		return;
	atomic_fetch_or_explicit(&devices_seen, UINT64_C(1) << device, memory_order_relaxed);
	if (is_of_pool)
		atomic_fetch_or_explicit(&pools_seen, UINT64_C(1) << device, memory_order_relaxed);
}

static void send(uint32_t device, struct event_device_room info)
{
	info.device = device;
	torsh_cuda_send(&(struct event){.id = EVENT_DEVICE_ROOM, .device_room = info});
}

/* A query of the agent sends its result itself. */
void torsh_cuda_memory_info_returned(const struct cuda_mem_get_info *info, uint32_t device)
{
	if (torsh_cuda_memory_info_is_querying || !info->free_bytes || !info->total_bytes)
		return;
	send(device, (struct event_device_room){.free_bytes = *info->free_bytes,
						.total_bytes = *info->total_bytes,
						.is_asked = ROOM_BY_PROGRAM});
}

/*
 * ---- queries -----------------------------------------------------------------------------------
 */

/*
 * State while the driver works for the agent, not for the program; no event can be sent meanwhile.
 */
struct query {
	void *outer;
	int mode;
};

/*
 * A capture in progress in the program, here or elsewhere, might forbid some of the agent's calls:
 * in relaxed mode it doesn't.
 */
static struct query begin_query(void)
{
	struct query query = {.outer = torsh_heap_enter_allocator(),
			      .mode = DRIVER_CAPTURE_RELAXED};

	torsh_cuda_memory_info_is_querying = 1;
	torsh_driver.cuThreadExchangeStreamCaptureMode(&query.mode);
	return query;
}

static void end_query(struct query *query)
{
	torsh_driver.cuThreadExchangeStreamCaptureMode(&query->mode);
	torsh_cuda_memory_info_is_querying = 0;
	torsh_heap_leave_allocator(query->outer);
}

/* Numbers of CUmemPool_attribute and CUgraphMem_attribute. */
enum { POOL_RESERVED = 5, POOL_RESERVED_HIGH, POOL_USED, POOL_USED_HIGH };
enum { GRAPHS_USED, GRAPHS_USED_HIGH, GRAPHS_RESERVED, GRAPHS_RESERVED_HIGH };

static void query_pool(int device, struct event_device_room *info)
{
	void *pool;

	if (!torsh_driver.cuDeviceGetMemPool || !torsh_driver.cuMemPoolGetAttribute ||
	    torsh_driver.cuDeviceGetMemPool(&pool, device))
		return;
#define QUERY(attribute, field) !torsh_driver.cuMemPoolGetAttribute(pool, attribute, &info->field)
	info->has_pools = QUERY(POOL_RESERVED, pools_reserved) &&
			  QUERY(POOL_RESERVED_HIGH, pools_reserved_high) &&
			  QUERY(POOL_USED, pools_used) && QUERY(POOL_USED_HIGH, pools_used_high);
#undef QUERY
}

static void query_graphs(int device, struct event_device_room *info)
{
	if (!torsh_driver.cuDeviceGetGraphMemAttribute)
		return;
#define QUERY(attribute, field) \
	!torsh_driver.cuDeviceGetGraphMemAttribute(device, attribute, &info->field)
	info->has_graphs = QUERY(GRAPHS_RESERVED, graphs_reserved) &&
			   QUERY(GRAPHS_RESERVED_HIGH, graphs_reserved_high) &&
			   QUERY(GRAPHS_USED, graphs_used) &&
			   QUERY(GRAPHS_USED_HIGH, graphs_used_high);
#undef QUERY
}

/* Numbers of CUlimit. */
enum { LIMIT_STACK, LIMIT_PRINTF, LIMIT_HEAP };

static void query_limits(int device, struct event_device_limits *limits)
{
	size_t stack, fifo, heap;

	if (!torsh_driver.cuCtxGetLimit || torsh_driver.cuCtxGetLimit(&stack, LIMIT_STACK) ||
	    torsh_driver.cuCtxGetLimit(&fifo, LIMIT_PRINTF) ||
	    torsh_driver.cuCtxGetLimit(&heap, LIMIT_HEAP))
		return;
	*limits = (struct event_device_limits){.device = (uint32_t)device,
					       .stack_bytes = stack,
					       .printf_bytes = fifo,
					       .heap_bytes = heap};
}

/*
 * In a context of the device. Returns 0 or a CUresult. limits: stay 0 if unknown; NULL: not wanted.
 */
static int query_context(int device, bool has_pools, struct event_device_room *info,
			 struct event_device_limits *limits)
{
	size_t free_bytes, total_bytes;
	int result;

	if (has_pools) {
		query_pool(device, info);
		query_graphs(device, info);
	}
	result = torsh_driver.cuMemGetInfo_v2(&free_bytes, &total_bytes);
	if (result)
		return result;
	info->free_bytes = free_bytes;
	info->total_bytes = total_bytes;
	if (limits)
		query_limits(device, limits);
	return 0;
}

/*
 * In the device's primary context; skips a device without one. Returns 0, ROOM_NOT_ASKED or a
 * CUresult.
 */
static int query_device(int device, bool has_pools, struct event_device_room *info,
			struct event_device_limits *limits)
{
	unsigned flags;
	int is_active = 0,
	    result = torsh_driver.cuDevicePrimaryCtxGetState(device, &flags, &is_active);
	void *context;

	if (result || !is_active)
		return result ? result : ROOM_NOT_ASKED;
	result = torsh_driver.cuDevicePrimaryCtxRetain(&context, device);
	if (result)
		return result;
	result = torsh_driver.cuCtxPushCurrent_v2(context);
	if (!result) {
		result = query_context(device, has_pools, info, limits);
		torsh_driver.cuCtxPopCurrent_v2(&context);
	}
	torsh_driver.cuDevicePrimaryCtxRelease_v2(device);
	return result;
}

/* The same, in the current context if that belongs to the device. */
static int query_here(int device, bool has_pools, struct event_device_room *info,
		      struct event_device_limits *limits)
{
	int current;

	if (!torsh_driver.cuCtxGetDevice(&current) && current == device)
		return query_context(device, has_pools, info, limits);
	return query_device(device, has_pools, info, limits);
}

static int query(bool may_call, uint32_t device, bool is_of_pool, struct event_device_room *info,
		 struct event_device_limits *limits)
{
	struct query state;
	bool has_pools;
	int result;

	if (device >= N_DEVICES || !may_call ||
	    (torsh_cuda_is_live() && !atomic_load_explicit(&is_ready, memory_order_acquire)))
		return ROOM_NOT_ASKED;
	has_pools =
		is_of_pool || atomic_load_explicit(&pools_seen, memory_order_relaxed) >> device & 1;
	state = begin_query();
	result = query_here((int)device, has_pools, info, limits);
	end_query(&state);
	return result;
}

int torsh_cuda_memory_info_query(uint32_t device, bool is_of_pool, struct event_device_room *info)
{
	return query(torsh_callbacks.may_call_driver(), device, is_of_pool, info, NULL);
}

int torsh_cuda_memory_info_query_at_call(uint32_t device, struct event_device_room *info)
{
	return query(torsh_callbacks.may_call_driver_at_call(), device, 0, info, NULL);
}

/* Send limits that differ from those that were sent last. Racing threads may both send them. */
static void send_limits(uint32_t device, const struct event_device_limits *limits)
{
	static _Atomic uint64_t sent[N_DEVICES];
	uint64_t sum = limits->stack_bytes * 3 + limits->printf_bytes * 5 + limits->heap_bytes * 7;

	if (sum && atomic_exchange_explicit(&sent[device], sum, memory_order_relaxed) != sum)
		torsh_cuda_send(
			&(struct event){.id = EVENT_DEVICE_LIMITS, .device_limits = *limits});
}

void torsh_cuda_memory_info_is_high(uint32_t device)
{
	struct event_device_room info = {.is_asked = ROOM_AT_HIGH};
	struct event_device_limits limits = {0};

	if (query(torsh_callbacks.may_call_driver(), device, 0, &info, &limits))
		return;
	send(device, info);
	send_limits(device, &limits);
}

/* ---- exit ------------------------------------------------------------------------------------ */

void torsh_cuda_memory_info_exiting(void)
{
	uint64_t seen = atomic_load_explicit(&devices_seen, memory_order_relaxed);
	uint64_t with_pools = atomic_load_explicit(&pools_seen, memory_order_relaxed);

	/*
	 * A host function on a driver thread may not call CUDA, though it may call exit; nor may a
	 * signal handler that interrupted a call.
	 */
	if (!seen || TORSH_SYS(SYS_gettid, 0, 0, 0, 0, 0, 0) != torsh_process->pid ||
	    torsh_driver_open())
		return;
	for (int device = 0; device < (int)N_DEVICES; device++) {
		struct event_device_room info = {.is_asked = ROOM_AT_END};
		struct event_device_limits limits = {0};
		struct query query;
		int result;

		if (!(seen >> device & 1))
			continue;
		query = begin_query();
		result = query_device(device, with_pools >> device & 1, &info, &limits);
		end_query(&query);
		if (result)
			continue;
		send((uint32_t)device, info);
		send_limits((uint32_t)device, &limits);
	}
}
