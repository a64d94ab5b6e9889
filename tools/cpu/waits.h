/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the threads of processes waited for in the C library: by stack, by thread and in all. Times
 * of several threads add up.
 */
#ifndef TORSH_CPU_WAITS_H
#define TORSH_CPU_WAITS_H

#include "agent/wire/event.h"
#include "tools/recording/recording.h"

extern const char *const torsh_wait_kind_names[N_THREAD_WAIT_KINDS]; /* "mutex", "gil" */
extern const char *const torsh_wait_kind_texts[N_THREAD_WAIT_KINDS];

/* Waits of 50 us and more, and shorter calls. */
struct wait_sum {
	uint64_t n, total_ns, longest_ns;
	uint64_t n_unfinished; /* of n: they lasted at the end of the process */
	uint64_t n_shorter, shorter_ns;
};

/* The waits of one kind with one stack, within one operator, on all threads of a process. */
struct wait_site {
	const struct recorded_process *process;
	uint32_t kind, stack;
	uint32_t operator; /* label; 0: none */
	uint32_t n_threads;
	struct wait_sum sum;
};

struct wait_thread {
	const struct recorded_process *process;
	uint32_t thread; /* row of the process's threads */
	struct wait_sum by_kind[N_THREAD_WAIT_KINDS], all;
};

struct waits {
	struct wait_site *sites; /* those with the longest total first */
	size_t n_sites;
	struct wait_thread *threads; /* likewise */
	size_t n_threads;
	struct wait_sum by_kind[N_THREAD_WAIT_KINDS], all;
};

/*
 * Collect the waits of these processes; kinds: bit i is set for each kind i that counts. The caller
 * frees them.
 */
void torsh_waits_collect(struct waits *waits, struct recorded_process *const *processes, size_t n,
			 uint32_t kinds);

/* Free the waits. */
void torsh_waits_free(struct waits *waits);

/* Returns the name of a row of the process's threads, or NULL. *tid: 0 if it isn't known. */
const char *torsh_wait_thread_name(const struct recorded_process *process, uint32_t thread,
				   uint32_t *tid);

#endif
