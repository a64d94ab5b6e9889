/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How the drain thread waits: on one futex of the writer's own, and in a deep sleep also on the
 * doorbells of the targets.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_SLEEP_H
#define TORSH_WRITER_THREADS_DRAIN_SLEEP_H

#include <stdatomic.h>
#include <stdint.h>

#define SLEEP_WORDS_MAX 127u /* FUTEX_WAITV_MAX minus the writer's own word */

/* Wait until *own differs from `seen` or at_most_ns have passed. */
void torsh_sleep_lightly(_Atomic uint32_t *own, uint32_t seen, uint64_t at_most_ns);

/* A word in shared memory and its value while there is nothing to do. */
struct sleep_word {
	_Atomic uint32_t *word;
	uint32_t expected;
};

/*
 * Wait likewise, or until one of n words differs from its expected value. Returns 0, or -ENOSYS
 * without waiting if the kernel cannot wait on several words (before 5.16, or more than
 * SLEEP_WORDS_MAX words).
 */
int torsh_sleep_deeply(_Atomic uint32_t *own, uint32_t seen, const struct sleep_word *words,
		       uint32_t n, uint64_t at_most_ns);

/* Change *own and wake the thread that sleeps on it. */
void torsh_sleep_wake(_Atomic uint32_t *own);

#endif
