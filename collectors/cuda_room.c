/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda_room.h"

#include <unistd.h>

#include "agent/process.h"
#include "shim/driver.h"

#define N_DEVICES 64u

static _Atomic uint64_t devices_seen, pools_seen; /* a bit for each device */

/* The agent asks the driver itself, and tells the answer itself. */
static _Thread_local int is_asking;

void torsh_cuda_room_see(uint32_t device, int is_of_pool)
{
	if (device >= N_DEVICES)
		return;
	atomic_fetch_or_explicit(&devices_seen, UINT64_C(1) << device, memory_order_relaxed);
	if (is_of_pool)
		atomic_fetch_or_explicit(&pools_seen, UINT64_C(1) << device, memory_order_relaxed);
}

static void tell(uint32_t device, struct event_device_room room)
{
	room.device = device;
	torsh_cuda_send(&(struct event){.id = EVENT_DEVICE_ROOM, .device_room = room});
}

void torsh_cuda_room_told(const struct cuda_room *room, uint32_t device)
{
	if (is_asking || !room->free_bytes || !room->total_bytes)
		return;
	tell(device, (struct event_device_room){
			     .free_bytes = *room->free_bytes, .total_bytes = *room->total_bytes, .is_asked = 1});
}

/* Numbers of CUmemPool_attribute and CUgraphMem_attribute. */
enum { POOL_RESERVED = 5, POOL_RESERVED_HIGH, POOL_USED, POOL_USED_HIGH };
enum { GRAPHS_USED, GRAPHS_USED_HIGH, GRAPHS_RESERVED, GRAPHS_RESERVED_HIGH };

static void ask_pool(int device, struct event_device_room *room)
{
	void *pool;

	if (!torsh_driver.cuDeviceGetMemPool || !torsh_driver.cuMemPoolGetAttribute ||
	    torsh_driver.cuDeviceGetMemPool(&pool, device))
		return;
#define ASK(attribute, field) !torsh_driver.cuMemPoolGetAttribute(pool, attribute, &room->field)
	room->has_pools = ASK(POOL_RESERVED, pools_reserved) && ASK(POOL_RESERVED_HIGH, pools_reserved_high) &&
			  ASK(POOL_USED, pools_used) && ASK(POOL_USED_HIGH, pools_used_high);
#undef ASK
}

static void ask_graphs(int device, struct event_device_room *room)
{
	if (!torsh_driver.cuDeviceGetGraphMemAttribute)
		return;
#define ASK(attribute, field) !torsh_driver.cuDeviceGetGraphMemAttribute(device, attribute, &room->field)
	room->has_graphs = ASK(GRAPHS_RESERVED, graphs_reserved) && ASK(GRAPHS_RESERVED_HIGH, graphs_reserved_high) &&
			   ASK(GRAPHS_USED, graphs_used) && ASK(GRAPHS_USED_HIGH, graphs_used_high);
#undef ASK
}

static void ask_context(int device, int has_pools)
{
	struct event_device_room room = {0};
	size_t free_bytes, total_bytes;

	if (has_pools) {
		ask_pool(device, &room);
		ask_graphs(device, &room);
	}
	if (torsh_driver.cuMemGetInfo_v2(&free_bytes, &total_bytes))
		return;
	room.free_bytes = free_bytes;
	room.total_bytes = total_bytes;
	tell((uint32_t)device, room);
}

/* A device whose context is gone is left alone. */
static void ask_device(int device, int has_pools)
{
	unsigned flags;
	int is_active = 0;
	void *context;

	if (torsh_driver.cuDevicePrimaryCtxGetState(device, &flags, &is_active) || !is_active ||
	    torsh_driver.cuDevicePrimaryCtxRetain(&context, device))
		return;
	if (!torsh_driver.cuCtxPushCurrent_v2(context)) {
		ask_context(device, has_pools);
		torsh_driver.cuCtxPopCurrent_v2(&context);
	}
	torsh_driver.cuDevicePrimaryCtxRelease_v2(device);
}

void torsh_cuda_room_exiting(void)
{
	uint64_t seen = atomic_load_explicit(&devices_seen, memory_order_relaxed);
	uint64_t with_pools = atomic_load_explicit(&pools_seen, memory_order_relaxed);

	/*
	 * A host function on one of the driver's own threads may not call CUDA, though it may call exit; nor may a signal
	 * handler that came in the middle of a call.
	 */
	if (!seen || TORSH_SYS(SYS_gettid, 0, 0, 0, 0, 0, 0) != torsh_process->pid || torsh_driver_open())
		return;
	is_asking = 1;
	for (int device = 0; device < (int)N_DEVICES; device++) {
		if (seen >> device & 1)
			ask_device(device, with_pools >> device & 1);
	}
	is_asking = 0;
}
