/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A hash table of live blocks, in pages of the agent: open addressing, at most half full, no
 * tombstones.
 */
#include "collectors/cuda/memory/cuda_live.h"

#include <stdbool.h>

#include "collectors/cuda/cuda_lock.h"
#include "shim/sys.h"

#define FIRST_SLOTS 1024u /* a power of two, as all sizes are */
/* of a device's memory: minimum between two new maximums, one part in this, */
#define STEP_SHARE 16u
#define STEP_MIN_BYTES (UINT64_C(2) << 20) /* and not less than the driver's mapping granularity */

struct live {
	uint64_t key; /* address or handle */
	uint64_t bytes;
	uint64_t of; /* of a mapping the handle, otherwise the context */
	/* of physical memory: its handle, each retain, and its mappings */
	uint32_t refs;
	uint16_t device;
	uint8_t kind; /* enum device_block_kind; BLOCK_NONE: the slot is free */
};

static struct cuda_lock lock; /* guards the rest */
static struct live *slots;
static uint32_t n_slots, n_live;
static bool has_failed; /* without memory: nothing is counted any more */
static uint64_t sums[LIVE_DEVICES_MAX], marks[LIVE_DEVICES_MAX];

/* What the thread's last free removed. */
static _Thread_local struct live taken;

/* Its slot, or the free slot where it belongs. With the lock, and slots. */
static uint32_t find(uint32_t kind, uint64_t key)
{
	/*
	 * By the golden ratio: the upper half is well distributed, whatever the alignment of
	 * addresses.
	 */
	uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (n_slots - 1);

	while (slots[at].kind != BLOCK_NONE && (slots[at].kind != kind || slots[at].key != key))
		at = (at + 1) & (n_slots - 1);
	return at;
}

static struct live *lookup(uint32_t kind, uint64_t key)
{
	uint32_t at;

	if (!slots)
		return NULL;
	at = find(kind, key);
	return slots[at].kind == BLOCK_NONE ? NULL : &slots[at];
}

/* Returns 0 without memory. */
static int grow(void)
{
	uint32_t n_old = n_slots, n = n_old ? 2 * n_old : FIRST_SLOTS;
	struct live *old = slots, *made = torsh_sys_pages(n * sizeof(*made));

	if (!made)
		return 0;
	slots = made;
	n_slots = n;
	for (uint32_t i = 0; i < n_old; i++) {
		if (old[i].kind != BLOCK_NONE)
			slots[find(old[i].kind, old[i].key)] = old[i];
	}
	if (old)
		TORSH_SYS(SYS_munmap, old, n_old * sizeof(*old), 0, 0, 0, 0);
	return 1;
}

/* Entries that follow in its run of slots move up, so that searches find no gap. */
static void take_out(struct live *live)
{
	uint32_t gap = (uint32_t)(live - slots), at = gap;

	n_live--;
	slots[gap].kind = BLOCK_NONE;
	while (slots[at = (at + 1) & (n_slots - 1)].kind != BLOCK_NONE) {
		struct live moved = slots[at];

		slots[at].kind = BLOCK_NONE;
		slots[find(moved.kind, moved.key)] = moved;
	}
}

static void drop(struct live *live)
{
	if (--live->refs)
		return;
	if (live->kind != BLOCK_MAPPING)
		sums[live->device] -= live->bytes;
	take_out(live);
}

static void put(const struct live *live)
{
	struct live *there = lookup(live->kind, live->key);

	/* The end of the previous block was not recorded. */
	if (there) {
		there->refs = 1;
		drop(there);
	}
	if (has_failed || (2 * n_live >= n_slots && !grow())) {
		has_failed = true;
		return;
	}
	slots[find(live->kind, live->key)] = *live;
	n_live++;
	if (live->kind != BLOCK_MAPPING)
		sums[live->device] += live->bytes;
}

/* A handle has another reference. */
static void put_name(const struct event_device_alloc *alloc)
{
	uint64_t handle = alloc->kind == BLOCK_MAPPING ? alloc->handle : alloc->address;
	struct live *of = lookup(BLOCK_PHYSICAL, handle);

	if (!of)
		return;
	of->refs++;
	if (alloc->kind == BLOCK_MAPPING)
		put(&(struct live){.key = alloc->address,
				   .bytes = alloc->bytes,
				   .of = handle,
				   .refs = 1,
				   .kind = BLOCK_MAPPING});
}

static bool is_of_device(const struct event_device_alloc *alloc)
{
	return (alloc->kind == BLOCK_DEVICE || alloc->kind == BLOCK_ARRAY ||
		alloc->kind == BLOCK_PHYSICAL) &&
	       !(alloc->flags & (BLOCK_IS_IMPORTED | BLOCK_IS_OF_HOST)) &&
	       alloc->device < LIVE_DEVICES_MAX;
}

static bool is_high(uint32_t device)
{
	uint64_t step = marks[device] / STEP_SHARE;

	if (has_failed ||
	    sums[device] < marks[device] + (step > STEP_MIN_BYTES ? step : STEP_MIN_BYTES))
		return false;
	marks[device] = sums[device];
	return true;
}

bool torsh_cuda_live_got(const struct event_device_alloc *alloc)
{
	int result = 0;

	torsh_cuda_lock(&lock);
	if (alloc->kind == BLOCK_MAPPING || alloc->flags & BLOCK_IS_RETAINED) {
		put_name(alloc);
	} else if (is_of_device(alloc)) {
		put(&(struct live){
			.key = alloc->address,
			.bytes = alloc->bytes,
			.of = alloc->context,
			.refs = 1,
			.device = (uint16_t)alloc->device,
			.kind = (uint8_t)alloc->kind,
		});
		result = is_high(alloc->device);
	}
	torsh_cuda_unlock(&lock);
	return result;
}

void torsh_cuda_live_frees(uint32_t kind, uint64_t address)
{
	struct live *live;

	torsh_cuda_lock(&lock);
	live = lookup(kind, address);
	taken = live ? *live : (struct live){.kind = BLOCK_NONE};
	if (live)
		drop(live);
	torsh_cuda_unlock(&lock);
}

void torsh_cuda_live_kept(uint32_t kind, uint64_t address)
{
	struct live *live;

	if (taken.kind != kind || taken.key != address)
		return;
	torsh_cuda_lock(&lock);
	live = lookup(kind, address);
	if (live)
		live->refs++;
	else
		put(&taken);
	torsh_cuda_unlock(&lock);
	taken.kind = BLOCK_NONE;
}

/* Whole, adjacent mappings. */
void torsh_cuda_live_unmapped(uint64_t address, uint64_t bytes)
{
	struct live *live;

	torsh_cuda_lock(&lock);
	for (uint64_t end = address + bytes;
	     address < end && (live = lookup(BLOCK_MAPPING, address)) && live->bytes;) {
		uint64_t handle = live->of;

		address += live->bytes;
		take_out(live);
		live = lookup(BLOCK_PHYSICAL, handle);
		if (live)
			drop(live);
	}
	torsh_cuda_unlock(&lock);
}

void torsh_cuda_live_context_ended(uint32_t context)
{
	torsh_cuda_lock(&lock);
	/* Removing an entry lets others move up, also into the same slot. */
	for (uint32_t i = 0; i < n_slots;) {
		if ((slots[i].kind == BLOCK_DEVICE || slots[i].kind == BLOCK_ARRAY) &&
		    slots[i].of == context)
			drop(&slots[i]);
		else
			i++;
	}
	torsh_cuda_unlock(&lock);
}
