/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda_pools.h"

#include "collectors/cuda.h"

#define N_POOLS 256u

static struct {
	struct cuda_lock lock; /* guards the rest */
	uint32_t n;
	struct {
		uint64_t pool;
		struct cuda_properties properties;
	} items[N_POOLS];
} pools;

void torsh_cuda_pools_learn(uint64_t pool, const struct cuda_properties *properties)
{
	uint32_t i = 0;

	torsh_cuda_lock(&pools.lock);
	while (i < pools.n && pools.items[i].pool != pool)
		i++;
	if (i < N_POOLS) {
		pools.items[i].pool = pool;
		pools.items[i].properties = *properties;
		if (i == pools.n)
			pools.n++;
	}
	torsh_cuda_unlock(&pools.lock);
}

void torsh_cuda_pools_place(struct event_device_alloc *alloc)
{
	struct cuda_properties properties = {.location = {.type = CUDA_LOCATION_NONE}};

	torsh_cuda_lock(&pools.lock);
	for (uint32_t i = 0; i < pools.n; i++) {
		if (pools.items[i].pool == alloc->pool)
			properties = pools.items[i].properties;
	}
	torsh_cuda_unlock(&pools.lock);
	if (properties.type == CUDA_TYPE_MANAGED) {
		alloc->kind = BLOCK_MANAGED;
	} else if (properties.location.type == CUDA_LOCATION_DEVICE) {
		alloc->device = (uint32_t)properties.location.id;
	} else if (properties.location.type != CUDA_LOCATION_NONE) {
		alloc->device = DEVICE_NOT_KNOWN;
		alloc->flags |= BLOCK_IS_OF_HOST;
	}
}
