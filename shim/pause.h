/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether new blocks are recorded: what a hook of the heap reads first, before the real call, which
 * is a jump where nothing is recorded. The writer decides by time stamps which blocks belong to a
 * pause; its flag only saves work, so no event marks the begin of a pause. Calls that have a begin
 * and an end are left out by their thread (agent/producer/schedule.h).
 */
#ifndef TORSH_SHIM_PAUSE_H
#define TORSH_SHIM_PAUSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum pause {
	PAUSE_NONE,
	PAUSE_BY_WRITER, /* new blocks are not recorded, and frees are */
	PAUSE_FOR_GOOD, /* no heap is recorded */
	/* the writer has ended: the process waits to be armed again (agent/session/rest.h) */
	PAUSE_ENDED,
};

/*
 * The enum pause of this process: points into the channel's header, to a cache line that only
 * pauses write. Without a channel it points to a word that stays PAUSE_NONE; if no heap is
 * recorded, to one that stays PAUSE_FOR_GOOD. So a hook checks one word.
 */
extern const _Atomic uint32_t *_Atomic torsh_pause __attribute__((visibility("hidden")));

/*
 * The process that the writer's pause is meant for. A forked child without a channel still reads
 * its parent's word, but 0 here: it gets a channel of its own first, and that pause ends.
 */
extern const int *torsh_pause_pid __attribute__((visibility("hidden")));

extern const _Atomic uint32_t torsh_never_paused; /* PAUSE_NONE */

/*
 * The same word for all other events, also where no heap is recorded: PAUSE_BY_WRITER while nothing
 * that begins now is recorded.
 */
extern const _Atomic uint32_t *_Atomic torsh_recording_pause __attribute__((visibility("hidden")));

static inline bool torsh_recording_is_paused(void)
{
	const _Atomic uint32_t *word =
		atomic_load_explicit(&torsh_recording_pause, memory_order_relaxed);

	return __builtin_expect(atomic_load_explicit(word, memory_order_relaxed) != PAUSE_NONE, 0);
}

static inline uint32_t torsh_pause_kind(void)
{
	const _Atomic uint32_t *word = atomic_load_explicit(&torsh_pause, memory_order_relaxed);

	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline bool torsh_pause_lasts(void)
{
	return __builtin_expect(torsh_pause_kind() != PAUSE_NONE, 0);
}

static inline bool torsh_pause_is_for_good(void)
{
	return __builtin_expect(torsh_pause_kind() == PAUSE_FOR_GOOD, 0);
}

/* Whether a new block of this process is not recorded, unless a realloc makes it. */
static inline bool torsh_pause_is_own(void)
{
	uint32_t kind = torsh_pause_kind();

	return __builtin_expect(kind != PAUSE_NONE, 0) &&
	       (kind == PAUSE_FOR_GOOD || *torsh_pause_pid);
}

/* torsh_pause_is_own for a kind of the writer's, which may have ended: then the process rests. */
bool torsh_pause_is_of_process(uint32_t kind);

/* The same for a hook that has not begun: a process whose writer has ended rests from here on. */
static inline bool torsh_pause_is_own_at_call(void)
{
	uint32_t kind = torsh_pause_kind();

	return __builtin_expect(kind != PAUSE_NONE, 0) &&
	       (kind == PAUSE_FOR_GOOD || torsh_pause_is_of_process(kind));
}

#endif
