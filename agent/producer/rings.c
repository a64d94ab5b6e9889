/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/producer/rings.h"

#include <errno.h>
#include <stdbool.h>

#include "agent/process/memory_lock.h"
#include "agent/process/process.h"

static int map_ring(int slot, struct ring *ring)
{
	long answer;

	if (torsh_channel_map_ring(&torsh_process->channel, slot, 0, ring))
		return -ENOMEM;
	/*
	 * Nothing was written there yet: the call only detects locked mappings, for which the
	 * kernel refuses it.
	 */
	answer = TORSH_SYS(SYS_madvise, ring->bytes, CHANNEL_RING_SMALL_BYTES, MADV_DONTNEED, 0, 0,
			   0);
	if (torsh_sys_failed(answer))
		torsh_memory_lock_note();
	return 0;
}

/*
 * The slots that are reused first keep their small rings mapped: mapping is the largest part of a
 * thread's start.
 */
int torsh_rings_take(int slot, struct ring *ring)
{
	uint8_t *kept = (uint32_t)slot < N_KEPT_RINGS ? torsh_process->rings[slot] : NULL;

	if (!kept)
		return map_ring(slot, ring);
	ring->bytes = kept;
	ring->mask = CHANNEL_RING_SMALL_BYTES - 1;
	return 0;
}

static bool is_kept(uint32_t slot)
{
	return slot < (torsh_memory_lock_is_on() ? N_LOCKED_RINGS : N_KEPT_RINGS) &&
	       !torsh_memory_lock_is_limited();
}

void torsh_rings_drop(uint32_t slot, const struct ring *ring)
{
	bool is_small = ring->mask + 1 == CHANNEL_RING_SMALL_BYTES,
	     stays = is_small && is_kept(slot);

	if (is_small && slot < N_KEPT_RINGS)
		torsh_process->rings[slot] = stays ? ring->bytes : NULL;
	if (!stays)
		torsh_channel_unmap_ring(ring);
}
