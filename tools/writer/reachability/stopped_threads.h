/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The threads of another process, stopped by ptrace: it gets no signal, and its parent sees
 * nothing. All functions on one thread, which is the tracer.
 */
#ifndef TORSH_WRITER_REACHABILITY_STOPPED_THREADS_H
#define TORSH_WRITER_REACHABILITY_STOPPED_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define THREAD_REGISTERS_MAX 40u

struct stopped_thread {
	pid_t tid;
	int signal; /* that it was about to get; 0: none */
	uint64_t stack_pointer;
	uint64_t registers[THREAD_REGISTERS_MAX];
	uint32_t n_registers;
};

struct stopped_threads {
	struct stopped_thread *items;
	uint32_t n;
	size_t capacity;
};

/*
 * Stop all threads of the process, and those that they create meanwhile. Returns 0, or -errno with
 * none stopped: -EPERM if the system forbids it, -EBUSY if a debugger has them, -ETIMEDOUT if one
 * can't be stopped, for example in a system call that nothing interrupts.
 */
int torsh_threads_stop(struct stopped_threads *threads, pid_t pid);

/* Let them go on where they were, and free the list. */
void torsh_threads_continue(struct stopped_threads *threads);

#endif
