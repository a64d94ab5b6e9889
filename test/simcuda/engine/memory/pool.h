/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Pools of memory that is allocated and freed in the order of a stream. Freed memory stays with its
 * pool until a synchronisation, and then as much as the release threshold allows.
 */
#ifndef SIMCUDA_POOL_H
#define SIMCUDA_POOL_H

#include "test/simcuda/engine/memory/memory.h"

struct sim_stream;

struct sim_pool {
	struct sim_device *device;
	struct sim_extents cached; /* reserved, and not in use */
	uint64_t threshold_bytes;
	uint64_t used_bytes, used_high_bytes, reserved_bytes, reserved_high_bytes;
	struct sim_pool *next;
};

/* With the lock, or before there is a second thread. */
struct sim_pool *sim_pool_create(struct sim_device *device);
void sim_pool_destroy(struct sim_pool *pool);

/* The memory can be used at once: the engine never runs into an address before its allocation. */
int sim_pool_alloc(struct sim_pool *pool, struct sim_stream *stream, size_t bytes,
		   uint64_t *address);

/*
 * Room in the device's memory that counts as the pool's, and is in nobody's use. False: there is
 * not enough. With the lock.
 */
bool sim_pool_reserve(struct sim_pool *pool, uint64_t bytes, uint64_t *offset);

/* Free it when the stream comes there. */
int sim_pool_free(uint64_t address, struct sim_stream *stream);

/* Give back to the device what is cached beyond the given bytes. */
void sim_pool_trim(struct sim_pool *pool, uint64_t keep_bytes);
void sim_pool_trim_all(struct sim_device *device);

/* ---- with the lock --------------------------------------------------------------------------- */

/* The stream came to the free. */
void sim_pool_release(uint64_t address);

/* A freed range of the pool that cannot be found by its address any more. */
void sim_pool_take_back(const struct sim_range *range);

void sim_pool_describe(const struct sim_pool *pool, struct sim_memory_event *event);

#endif
