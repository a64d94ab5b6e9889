/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/memory/cuda_memory_info.h"

#include <stdatomic.h>
#include <unistd.h>

#include "agent/process/process.h"
#include "collectors/cuda/cuda.h"
#include "shim/cuda/driver.h"
#include "shim/hooks.h"

#define N_DEVICES 64u

static _Atomic uint32_t is_ready; /* the driver's functions were found */

static _Atomic uint64_t devices_seen, pools_seen; /* a bit for each device */

_Thread_local int torsh_cuda_memory_info_is_asking;

void torsh_cuda_memory_info_begin(void)
{
	atomic_store_explicit(&is_ready, !torsh_driver_open(), memory_order_release);
}

void torsh_cuda_memory_info_see(uint32_t device, int is_of_pool)
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

/* Where the agent asks it tells the answer itself. */
void torsh_cuda_memory_info_told(const struct cuda_room *room, uint32_t device)
{
	if (torsh_cuda_memory_info_is_asking || !room->free_bytes || !room->total_bytes)
		return;
	tell(device, (struct event_device_room){.free_bytes = *room->free_bytes,
						.total_bytes = *room->total_bytes,
						.is_asked = ROOM_BY_PROGRAM});
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* What the driver does for us is nothing of the program's; nothing can be told meanwhile. */
struct asking {
	void *outer;
	int mode;
};

/*
 * A capture that the program has under way, here or elsewhere, might forbid some of our calls:
 * relaxed, it doesn't.
 */
static struct asking begin_asking(void)
{
	struct asking asking = {.outer = torsh_heap_enter_allocator(),
				.mode = DRIVER_CAPTURE_RELAXED};

	torsh_cuda_memory_info_is_asking = 1;
	torsh_driver.cuThreadExchangeStreamCaptureMode(&asking.mode);
	return asking;
}

static void end_asking(struct asking *asking)
{
	torsh_driver.cuThreadExchangeStreamCaptureMode(&asking->mode);
	torsh_cuda_memory_info_is_asking = 0;
	torsh_heap_leave_allocator(asking->outer);
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
	room->has_pools = ASK(POOL_RESERVED, pools_reserved) &&
			  ASK(POOL_RESERVED_HIGH, pools_reserved_high) &&
			  ASK(POOL_USED, pools_used) && ASK(POOL_USED_HIGH, pools_used_high);
#undef ASK
}

static void ask_graphs(int device, struct event_device_room *room)
{
	if (!torsh_driver.cuDeviceGetGraphMemAttribute)
		return;
#define ASK(attribute, field) \
	!torsh_driver.cuDeviceGetGraphMemAttribute(device, attribute, &room->field)
	room->has_graphs = ASK(GRAPHS_RESERVED, graphs_reserved) &&
			   ASK(GRAPHS_RESERVED_HIGH, graphs_reserved_high) &&
			   ASK(GRAPHS_USED, graphs_used) && ASK(GRAPHS_USED_HIGH, graphs_used_high);
#undef ASK
}

/* In a context of the device's. Returns 0 or a CUresult. */
static int ask_context(int device, int has_pools, struct event_device_room *room)
{
	size_t free_bytes, total_bytes;
	int result;

	if (has_pools) {
		ask_pool(device, room);
		ask_graphs(device, room);
	}
	result = torsh_driver.cuMemGetInfo_v2(&free_bytes, &total_bytes);
	if (result)
		return result;
	room->free_bytes = free_bytes;
	room->total_bytes = total_bytes;
	return 0;
}

/*
 * In its primary context; a device whose context is gone is left alone. Returns 0, ROOM_NOT_ASKED
 * or a CUresult.
 */
static int ask_device(int device, int has_pools, struct event_device_room *room)
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
		result = ask_context(device, has_pools, room);
		torsh_driver.cuCtxPopCurrent_v2(&context);
	}
	torsh_driver.cuDevicePrimaryCtxRelease_v2(device);
	return result;
}

/* The same, in the context that is current where that is one of the device's. */
static int ask_here(int device, int has_pools, struct event_device_room *room)
{
	int current;

	if (!torsh_driver.cuCtxGetDevice(&current) && current == device)
		return ask_context(device, has_pools, room);
	return ask_device(device, has_pools, room);
}

int torsh_cuda_memory_info_ask(uint32_t device, int is_of_pool, struct event_device_room *room)
{
	struct asking asking;
	int has_pools, result;

	if (device >= N_DEVICES || !torsh_cuda_may_call() ||
	    (torsh_cuda_is_live() && !atomic_load_explicit(&is_ready, memory_order_acquire)))
		return ROOM_NOT_ASKED;
	has_pools =
		is_of_pool || atomic_load_explicit(&pools_seen, memory_order_relaxed) >> device & 1;
	asking = begin_asking();
	result = ask_here((int)device, has_pools, room);
	end_asking(&asking);
	return result;
}

void torsh_cuda_memory_info_is_high(uint32_t device)
{
	struct event_device_room room = {.is_asked = ROOM_AT_HIGH};

	if (!torsh_cuda_memory_info_ask(device, 0, &room))
		tell(device, room);
}

/* ---- the end --------------------------------------------------------------------------------- */

void torsh_cuda_memory_info_exiting(void)
{
	uint64_t seen = atomic_load_explicit(&devices_seen, memory_order_relaxed);
	uint64_t with_pools = atomic_load_explicit(&pools_seen, memory_order_relaxed);

	/*
	 * A host function on one of the driver's own threads may not call CUDA, though it may call
	 * exit; nor may a signal handler that came in the middle of a call.
	 */
	if (!seen || TORSH_SYS(SYS_gettid, 0, 0, 0, 0, 0, 0) != torsh_process->pid ||
	    torsh_driver_open())
		return;
	for (int device = 0; device < (int)N_DEVICES; device++) {
		struct event_device_room room = {.is_asked = ROOM_AT_END};
		struct asking asking;
		int result;

		if (!(seen >> device & 1))
			continue;
		asking = begin_asking();
		result = ask_device(device, with_pools >> device & 1, &room);
		end_asking(&asking);
		if (!result)
			tell((uint32_t)device, room);
	}
}
