/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/memory/cuda_pools.h"

#include "collectors/cuda/cuda_lock.h"
#include "collectors/cuda/cuda_slab.h"

struct pool {
	struct pool *next;
	uint64_t handle;
	struct cuda_properties properties;
};

static struct cuda_lock lock; /* guards the rest */
static struct pool *pools;
static struct cuda_slab slab;

/* With the lock. */
static struct pool *find_pool(uint64_t handle)
{
	struct pool *pool = pools;

	while (pool && pool->handle != handle)
		pool = pool->next;
	return pool;
}

/* With the lock. NULL without memory. */
static struct pool *add_pool(uint64_t handle)
{
	struct pool *pool = torsh_cuda_slab_take(&slab, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->handle = handle;
	pool->next = pools;
	pools = pool;
	return pool;
}

void torsh_cuda_pools_add(uint64_t handle, const struct cuda_properties *properties)
{
	struct pool *pool;

	torsh_cuda_lock(&lock);
	pool = find_pool(handle);
	if (!pool)
		pool = add_pool(handle);
	if (pool)
		pool->properties = *properties;
	torsh_cuda_unlock(&lock);
}

void torsh_cuda_pools_locate(struct event_device_alloc *alloc)
{
	struct cuda_properties properties = {.location = {.type = CUDA_LOCATION_NONE}};
	const struct pool *pool;

	torsh_cuda_lock(&lock);
	pool = find_pool(alloc->pool);
	if (pool)
		properties = pool->properties;
	torsh_cuda_unlock(&lock);
	if (properties.type == CUDA_TYPE_MANAGED) {
		alloc->kind = BLOCK_MANAGED;
	} else if (properties.location.type == CUDA_LOCATION_DEVICE) {
		alloc->device = (uint32_t)properties.location.id;
	} else if (properties.location.type != CUDA_LOCATION_NONE) {
		alloc->device = DEVICE_NOT_KNOWN;
		alloc->flags |= BLOCK_IS_OF_HOST;
	}
}
