/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/image/glibc_state.h"

#include <stdbool.h>

/*
 * struct malloc_state, in words, from glibc 2.27 on: lock and flags, the flag of the fast bins, ten
 * of these, the top chunk, the last remainder, the bins as pairs of pointers, their map, and the
 * next state.
 */
#define STATE_BINS 14u
#define STATE_N_BINS 127u
#define STATE_NEXT (STATE_BINS + 2 * STATE_N_BINS + 2)
#define STATE_WORDS (STATE_NEXT + 5)
#define EMPTY_MIN 40u /* bins: chunks of most sizes are never free at the same time */
#define ARENA_BYTES (UINT64_C(64) << 20)
#define ARENA_STATE_MAX 0x40u

/* A bin that is empty points to itself, as if it were a chunk. */
static bool is_empty_bin(uint64_t address, const uint64_t *words, size_t i)
{
	uint64_t chunk = address + 8 * i - 16;

	return words[i] == chunk && words[i + 1] == chunk;
}

static bool is_state(uint64_t address, const uint64_t *words, size_t at)
{
	uint64_t next = words[at + STATE_NEXT];
	uint32_t n_empty = 0;

	if (next != address + 8 * at && (next % ARENA_BYTES > ARENA_STATE_MAX || !next))
		return false;
	for (uint32_t i = 0; i < STATE_N_BINS; i++)
		n_empty += is_empty_bin(address, words, at + STATE_BINS + 2 * i);
	return n_empty >= EMPTY_MIN;
}

void torsh_glibc_state_blank(uint64_t address, uint64_t *words, size_t n)
{
	for (size_t at = 0; at + STATE_WORDS <= n; at++) {
		if (!is_state(address, words, at))
			continue;
		for (size_t i = 0; i < STATE_WORDS; i++)
			words[at + i] = 0;
		return;
	}
}
