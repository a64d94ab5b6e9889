/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain/sleep.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tools/writer/input/clock_conversion.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* From linux/futex.h of Linux 5.16, for older headers. */
struct wait_word {
	uint64_t value;
	uint64_t address;
	uint32_t flags;
	uint32_t reserved;
};

#define WAIT_WORD_32 2u

void torsh_sleep_lightly(_Atomic uint32_t *own, uint32_t seen, uint64_t at_most_ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(at_most_ns / 1000000000u),
		.tv_nsec = (long)(at_most_ns % 1000000000u),
	};

	syscall(SYS_futex, own, FUTEX_WAIT_PRIVATE, seen, &timeout, NULL, 0);
}

int torsh_sleep_deeply(_Atomic uint32_t *own, uint32_t seen, const struct sleep_word *words,
		       uint32_t n, uint64_t at_most_ns)
{
	struct wait_word waiters[SLEEP_WORDS_MAX + 1] = {
		{.value = seen,
		 .address = (uintptr_t)own,
		 .flags = WAIT_WORD_32 | FUTEX_PRIVATE_FLAG},
	};
	uint64_t until_ns = torsh_clock_monotonic_ns() + at_most_ns;
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000u),
		.tv_nsec = (long)(until_ns % 1000000000u),
	};

	if (n > SLEEP_WORDS_MAX)
		return -ENOSYS;
	for (uint32_t i = 0; i < n; i++)
		waiters[i + 1] = (struct wait_word){
			.value = words[i].expected,
			.address = (uintptr_t)words[i].word,
			.flags = WAIT_WORD_32,
		};
	if (syscall(SYS_futex_waitv, waiters, n + 1, 0, &until, CLOCK_MONOTONIC) < 0 &&
	    (errno == ENOSYS || errno == EINVAL || errno == EPERM))
		return -ENOSYS;
	return 0;
}

void torsh_sleep_wake(_Atomic uint32_t *own)
{
	atomic_fetch_add_explicit(own, 1, memory_order_release);
	syscall(SYS_futex, own, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
