/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/pools.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

struct walk {
	struct pools *pools;
	const struct prepass *prepass;
	const struct recorded_process *process;
	const struct event_pool *call;
	uint64_t at_ns;
};

struct key {
	uint64_t process, address;
};

static struct key key_of(const struct walk *walk, uint64_t address)
{
	return (struct key){walk->process->number, address};
}

static struct memory_pool *add_pool(struct walk *walk)
{
	struct pools *pools = walk->pools;
	const struct event_pool *call = walk->call;
	struct key key = key_of(walk, call->heap);
	size_t former;

	/* The former one at the same address keeps its account. */
	torsh_hash_map_remove(&pools->by_heap, &key, sizeof(key), &former);
	torsh_hash_map_put(&pools->by_heap, &key, sizeof(key), pools->n);
	pools->items =
		torsh_array_reserve(pools->items, pools->n, &pools->n_room, sizeof(*pools->items));
	pools->items[pools->n] = (struct memory_pool){
		.process = walk->process,
		.domain = torsh_timeline_label(walk->process, call->domain),
	};
	return &pools->items[pools->n++];
}

static struct memory_pool *find_pool(struct walk *walk)
{
	struct key key = key_of(walk, walk->call->heap);
	const struct hash_entry *entry =
		torsh_hash_map_find(&walk->pools->by_heap, &key, sizeof(key));

	if (entry)
		return &walk->pools->items[entry->value];
	/* The whole address space is there without being registered. */
	return walk->call->heap ? NULL : add_pool(walk);
}

static void end_region(struct pools *pools, struct pool_region *region)
{
	struct memory_pool *pool = &pools->items[region->pool];

	region->is_live = false;
	pool->n_live--;
	pool->n_ended++;
	pool->live_bytes -= region->bytes;
}

static void end_regions_of(struct pools *pools, size_t pool)
{
	struct memory_pool *ended = &pools->items[pool];

	/* A pool may be reset at each step: those that ended before are not looked at again. */
	for (size_t i = ended->first_live; i < pools->n_regions && ended->n_live; i++)
		if (pools->regions[i].is_live && pools->regions[i].pool == pool)
			end_region(pools, &pools->regions[i]);
	ended->first_live = pools->n_regions;
}

static void raise_peak(const struct walk *walk, struct memory_pool *pool)
{
	if (pool->live_bytes <= pool->peak_bytes)
		return;
	pool->peak_bytes = pool->live_bytes;
	pool->peak_ns = walk->at_ns;
}

static struct pool_region *find_region(const struct walk *walk)
{
	struct key key = key_of(walk, walk->call->address);
	const struct hash_entry *entry =
		torsh_hash_map_find(&walk->pools->by_address, &key, sizeof(key));
	struct pool_region *region = entry ? &walk->pools->regions[entry->value] : NULL;

	return region && region->is_live ? region : NULL;
}

static void add_region(struct walk *walk)
{
	struct pools *pools = walk->pools;
	struct memory_pool *pool = find_pool(walk);
	struct key key = key_of(walk, walk->call->address);
	struct pool_region *former = find_region(walk);
	size_t unused;

	if (!pool) {
		pools->n_unknown++;
		return;
	}
	if (former)
		end_region(pools, former);
	torsh_hash_map_remove(&pools->by_address, &key, sizeof(key), &unused);
	torsh_hash_map_put(&pools->by_address, &key, sizeof(key), pools->n_regions);
	pools->regions = torsh_array_reserve(pools->regions, pools->n_regions, &pools->regions_room,
					     sizeof(*pools->regions));
	pools->regions[pools->n_regions++] =
		(struct pool_region){.address = walk->call->address,
				     .bytes = walk->call->bytes,
				     .pool = (size_t)(pool - pools->items),
				     .is_live = true};
	pool->n_registered++;
	pool->n_live++;
	pool->live_bytes += walk->call->bytes;
	pool->total_bytes += walk->call->bytes;
	raise_peak(walk, pool);
}

static void change_region(struct walk *walk)
{
	struct pool_region *region = find_region(walk);
	struct memory_pool *pool = region ? &walk->pools->items[region->pool] : NULL;

	if (!region) {
		walk->pools->n_unknown++;
	} else if (walk->call->what == POOL_REGION_ENDS) {
		end_region(walk->pools, region);
	} else if (walk->call->what == POOL_NAMES) {
		region->name = torsh_timeline_label(walk->process, walk->call->name);
	} else {
		pool->live_bytes += walk->call->bytes - region->bytes;
		if (walk->call->bytes > region->bytes)
			pool->total_bytes += walk->call->bytes - region->bytes;
		region->bytes = walk->call->bytes;
		raise_peak(walk, pool);
	}
}

static void change_pool(struct walk *walk)
{
	struct memory_pool *pool = find_pool(walk);

	if (!pool) {
		walk->pools->n_unknown++;
		return;
	}
	end_regions_of(walk->pools, (size_t)(pool - walk->pools->items));
	pool->is_ended = walk->call->what == POOL_ENDS;
}

static int visit(void *context, const struct recorded_process *process,
		 const struct timeline_event *event)
{
	struct walk *walk = context;
	struct memory_pool *pool;

	if (event->event.id != EVENT_POOL || !torsh_prepass_of(walk->prepass, process))
		return 0;
	walk->process = process;
	walk->call = &event->event.pool;
	walk->at_ns = event->at_ns;
	switch (walk->call->what) {
	case POOL_BEGINS:
		pool = add_pool(walk);
		pool->name = torsh_timeline_label(process, walk->call->name);
		pool->address = walk->call->address;
		pool->bytes = walk->call->bytes;
		break;
	case POOL_ENDS:
	case POOL_RESETS:
		change_pool(walk);
		break;
	case POOL_REGION:
		add_region(walk);
		break;
	case POOL_RESIZES:
	case POOL_REGION_ENDS:
	case POOL_NAMES:
		change_region(walk);
		break;
	}
	return 0;
}

int torsh_pools_find(struct pools *pools, const struct recording *recording,
		     const struct prepass *prepass)
{
	struct walk walk = {.pools = pools, .prepass = prepass};

	return torsh_timeline_visit(recording, visit, &walk);
}

void torsh_pools_free(struct pools *pools)
{
	torsh_hash_map_free(&pools->by_heap);
	torsh_hash_map_free(&pools->by_address);
	free(pools->items);
	free(pools->regions);
	*pools = (struct pools){0};
}
