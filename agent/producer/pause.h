/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The writer's flag that new blocks need not be sent. The writer decides by time stamps which
 * blocks belong to a pause; the flag only saves work, so no event marks the begin of a pause.
 */
#ifndef TORSH_AGENT_PRODUCER_PAUSE_H
#define TORSH_AGENT_PRODUCER_PAUSE_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Points into the channel's header, to a cache line that only pauses write. Without a channel it
 * points to a word that stays 0; if no heap is recorded, to one that stays 1. So a hook checks one
 * word.
 */
extern const _Atomic uint32_t *_Atomic torsh_pause;
extern const _Atomic uint32_t torsh_never_paused;

static inline int torsh_pause_lasts(void)
{
	const _Atomic uint32_t *word = atomic_load_explicit(&torsh_pause, memory_order_relaxed);

	return atomic_load_explicit(word, memory_order_relaxed) != 0;
}

#endif
