/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The writer's word that new blocks need not be sent. It knows from their stamps which blocks
 * belong to a pause; here only work is saved, so that no event has to say where a pause began.
 */
#ifndef TORSH_AGENT_PRODUCER_PAUSE_H
#define TORSH_AGENT_PRODUCER_PAUSE_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Into the channel's header, to a line that only pauses write to. Without a channel to a word that
 * stays 0; where no heap is recorded to one that stays 1, so that a hook asks once.
 */
extern const _Atomic uint32_t *_Atomic torsh_pause;
extern const _Atomic uint32_t torsh_never_paused;

static inline int torsh_pause_lasts(void)
{
	const _Atomic uint32_t *word = atomic_load_explicit(&torsh_pause, memory_order_relaxed);

	return atomic_load_explicit(word, memory_order_relaxed) != 0;
}

#endif
