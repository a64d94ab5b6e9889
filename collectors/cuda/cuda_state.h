/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* State shared by all parts of the device collector: whether CUPTI is attached, and losses. */
#ifndef TORSH_COLLECTORS_CUDA_CUDA_STATE_H
#define TORSH_COLLECTORS_CUDA_CUDA_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/producer/counter.h"

/* Sums of missing records; any thread adds to them. */
struct cuda_losses {
	_Atomic uint64_t records; /* delivered by CUPTI: not missing */
	_Atomic uint64_t dropped, without_room, invalid;
	_Atomic uint64_t flushes_cut; /* timed out, or refused by CUPTI */
	_Atomic uint64_t buffers_kept; /* still held by CUPTI after the last flush */
	_Atomic uint32_t is_dropping_unknown; /* CUPTI does not report the number that it dropped */
};

extern struct cuda_losses torsh_cuda_losses;

/* Add n to a sum of lost records (dropped, without_room); any thread. */
static inline void torsh_cuda_lose(_Atomic uint64_t *sum, uint64_t n)
{
	atomic_fetch_add_explicit(sum, n, memory_order_relaxed);
	torsh_count_many(COUNTER_device_records_lost, n);
}

/* CUPTI_API_VERSION of the loaded library; written before any buffer is requested. */
extern uint32_t torsh_cuda_version;

/* The activity kinds that the agent enabled, one bit per CUPTI kind. */
extern _Atomic uint64_t torsh_cuda_own_kinds;

#define CUDA_OWN_KINDS atomic_load_explicit(&torsh_cuda_own_kinds, memory_order_relaxed)

/* Whether CUPTI is attached in this process; false in a forked child. */
bool torsh_cuda_is_live(void);

/* Whether the last flush has begun: driver activity after it is not the program's. */
bool torsh_cuda_is_ending(void);

/*
 * Called before CUPTI is attached: allocates the memory of is_live and is_ending. Returns false
 * without memory.
 */
bool torsh_cuda_state_make(void);

/* Set the result of torsh_cuda_is_live; after torsh_cuda_state_make succeeded. */
void torsh_cuda_state_attach(bool is_attached);

/* The last flush begins; returns true if it had begun before. Only while CUPTI is attached. */
bool torsh_cuda_state_end(void);

/* Send a device_loss event with the sums so far; takes no lock. */
void torsh_cuda_send_losses(void);

#endif
