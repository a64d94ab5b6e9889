/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the threads of a process waited for, as in Waits and ShorterWaits. */
#ifndef TORSH_RECORDING_WAITS_RECORDED_WAITS_H
#define TORSH_RECORDING_WAITS_RECORDED_WAITS_H

#include <stddef.h>
#include <stdint.h>

struct recorded_wait {
	uint32_t thread; /* row of the process's threads */
	uint32_t kind; /* enum thread_wait_kind, below N_THREAD_WAIT_KINDS */
	uint32_t stack; /* 0: not known */
	uint32_t operator; /* label of the innermost one; 0: none */
	uint64_t n, total_ns, longest_ns, n_unfinished;
};

struct recorded_shorter_wait {
	uint32_t thread, kind;
	uint64_t n, total_ns;
};

struct recorded_waits {
	struct recorded_wait *items;
	size_t n;
	struct recorded_shorter_wait *shorter;
	size_t n_shorter;
};

#endif
