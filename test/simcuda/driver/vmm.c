/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Virtual memory management: addresses that are reserved, physical memory by handle, and its
 * mapping. The pages are really mapped where the program has them; until cuMemSetAccess they can't
 * be used.
 */
#include "test/simcuda/driver/driver.h"
#include "test/simcuda/engine/memory/others.h"
#include "test/simcuda/engine/memory/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/log/log.h"

enum { HANDLE_MAGIC = 0x50687973 };

struct physical {
	uint32_t magic;
	struct sim_device *device;
	CUmemAllocationProp prop;
	uint64_t offset, bytes;
	int n_refs; /* of the program and of mappings */
};

static bool is_granular(uint64_t n)
{
	return n && n % SIM_GRANULARITY == 0;
}

CUresult do_cuMemGetAllocationGranularity(const cuMemGetAllocationGranularity_p *p)
{
	*p->granularity = SIM_GRANULARITY;
	return CUDA_SUCCESS;
}

CUresult do_cuMemAddressReserve(const cuMemAddressReserve_p *p)
{
	size_t alignment = p->alignment > SIM_GRANULARITY ? p->alignment : SIM_GRANULARITY;
	char *all, *aligned;

	if (!is_granular(p->size))
		return CUDA_ERROR_INVALID_VALUE;
	all = mmap((void *)(uintptr_t)p->addr, p->size + alignment, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	aligned = (char *)(((uintptr_t)all + alignment - 1) & -(uintptr_t)alignment);
	if (aligned > all)
		munmap(all, (size_t)(aligned - all));
	if (aligned < all + alignment)
		munmap(aligned + p->size, (size_t)(all + alignment - aligned));
	*p->ptr = (CUdeviceptr)(uintptr_t)aligned;
	return CUDA_SUCCESS;
}

CUresult do_cuMemAddressFree(const cuMemAddressFree_p *p)
{
	struct sim_range range;

	if (sim_memory_lookup(p->ptr, &range))
		return CUDA_ERROR_INVALID_VALUE;
	return munmap((void *)(uintptr_t)p->ptr, p->size) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static struct physical *physical_of(CUmemGenericAllocationHandle handle)
{
	struct physical *physical = (struct physical *)(uintptr_t)handle;

	return physical && physical->magic == HANDLE_MAGIC ? physical : NULL;
}

/* With the lock. */
static void report(const char *what, const struct physical *physical)
{
	uint64_t left = sim_memory_left(physical->device);

	if (sim_log_is_on())
		sim_log("{\"kind\":\"%s\",\"handle\":%lu,\"bytes\":%lu,\"time\":%lu,\"device\":%d,\"left\":%lu}",
			what, (uint64_t)(uintptr_t)physical, physical->bytes, sim_now(),
			physical->device->ordinal, left);
}

CUresult do_cuMemCreate(const cuMemCreate_p *p)
{
	struct sim_device *device = sim_device(p->prop->location.id);
	struct physical *physical;

	if (!device || p->prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!is_granular(p->size))
		return CUDA_ERROR_INVALID_VALUE;
	physical = calloc(1, sizeof(*physical));
	*physical = (struct physical){.magic = HANDLE_MAGIC,
				      .device = device,
				      .prop = *p->prop,
				      .bytes = p->size,
				      .n_refs = 1};
	sim_lock();
	bool has_room =
		sim_extents_take(&device->free_memory, p->size, SIM_GRANULARITY, &physical->offset);
	if (has_room)
		report("create", physical);
	else
		sim_memory_refuse(device, p->size);
	sim_unlock();
	if (!has_room) {
		free(physical);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*p->handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
	return CUDA_SUCCESS;
}

/* With the lock. */
static void unref(struct physical *physical)
{
	if (--physical->n_refs)
		return;
	/* The struct stays, as a stale handle. */
	physical->magic = 0;
	sim_memory_discard(physical->device, physical->offset, physical->bytes);
	sim_extents_give(&physical->device->free_memory, physical->offset, physical->bytes);
	report("release", physical);
}

CUresult do_cuMemRelease(const cuMemRelease_p *p)
{
	struct physical *physical = physical_of(p->handle);

	if (!physical)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	unref(physical);
	sim_unlock();
	return CUDA_SUCCESS;
}

CUresult do_cuMemMap(const cuMemMap_p *p)
{
	struct physical *physical = physical_of(p->handle);
	struct sim_context *context;

	if (!physical || p->offset || p->size > physical->bytes || !is_granular(p->size) ||
	    drv_context(&context))
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_range found, range = {
					.base = p->ptr,
					.bytes = p->size,
					.bytes_at = physical->device->memory_at + physical->offset,
					.kind = SIM_MEMORY_DEVICE,
					.device = physical->device->ordinal,
					.context = context->id,
					.is_mapping = true,
					.offset = physical->offset,
					.handle = physical,
				};
	if (mmap((void *)(uintptr_t)p->ptr, p->size, PROT_NONE,
		 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, physical->device->memory_fd,
		 (off_t)physical->offset) == MAP_FAILED)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	bool is_taken = sim_memory_find(p->ptr, &found);
	if (!is_taken) {
		physical->n_refs++;
		sim_memory_insert(&range);
		sim_memory_report(&range, false, (struct sim_memory_from){0});
	}
	sim_unlock();
	return is_taken ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult do_cuMemUnmap(const cuMemUnmap_p *p)
{
	uint64_t at = p->ptr, end = p->ptr + p->size;
	struct sim_range range;

	sim_lock();
	while (at < end && sim_memory_find(at, &range) && range.is_mapping && range.base == at &&
	       at + range.bytes <= end) {
		sim_memory_remove(at, &range);
		sim_memory_report(&range, true, (struct sim_memory_from){0});
		unref(range.handle);
		at += range.bytes;
	}
	sim_unlock();
	if (at == p->ptr)
		return CUDA_ERROR_INVALID_VALUE;
	mmap((void *)(uintptr_t)p->ptr, at - p->ptr, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	return at == end ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuMemSetAccess(const cuMemSetAccess_p *p)
{
	struct sim_range range;
	int access = sim_config()->is_protected ? PROT_NONE : PROT_READ | PROT_WRITE;

	if (!sim_memory_lookup(p->ptr, &range) || !range.is_mapping)
		return CUDA_ERROR_INVALID_VALUE;
	return mprotect((void *)(uintptr_t)p->ptr, p->size, access) ? CUDA_ERROR_INVALID_VALUE
								    : CUDA_SUCCESS;
}

CUresult do_cuMemGetAccess(const cuMemGetAccess_p *p)
{
	struct sim_range range;

	*p->flags = sim_memory_lookup(p->ptr, &range) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
						      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

CUresult
do_cuMemGetAllocationPropertiesFromHandle(const cuMemGetAllocationPropertiesFromHandle_p *p)
{
	const struct physical *physical = physical_of(p->handle);

	if (!physical)
		return CUDA_ERROR_INVALID_VALUE;
	*p->prop = physical->prop;
	return CUDA_SUCCESS;
}

CUresult do_cuMemRetainAllocationHandle(const cuMemRetainAllocationHandle_p *p)
{
	struct sim_range range;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	sim_lock();
	if (sim_memory_find((uint64_t)(uintptr_t)p->addr, &range) && range.is_mapping) {
		((struct physical *)range.handle)->n_refs++;
		*p->handle = (CUmemGenericAllocationHandle)(uintptr_t)range.handle;
		result = CUDA_SUCCESS;
	}
	sim_unlock();
	return result;
}
