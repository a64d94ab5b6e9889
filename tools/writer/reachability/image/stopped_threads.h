/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The threads of another process, stopped by ptrace: it gets no signal, and its parent sees
 * nothing. All functions on one thread, which is the tracer.
 */
#ifndef TORSH_WRITER_REACHABILITY_IMAGE_STOPPED_THREADS_H
#define TORSH_WRITER_REACHABILITY_IMAGE_STOPPED_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define THREAD_REGISTERS_MAX 40u

struct stopped_thread {
	pid_t tid;
	bool is_stopped; /* false: it waits by itself, or is late */
	bool is_late; /* a stop was requested, and it has not stopped yet */
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
 * Stop all threads of the process, and those that they create meanwhile. waiting_at is the stack
 * pointer of a thread that waits for that, with its registers above it, or 0: if it is the only
 * thread nothing has to be stopped. may_stop: a system call that is interrupted may begin again,
 * which a filter of system calls can forbid. Returns 0, or -errno with none stopped: -EACCES
 * without may_stop, -EPERM if the system forbids ptrace or a debugger has the process, -ETIMEDOUT
 * if a thread can't be stopped, for example in a system call that nothing interrupts.
 */
int torsh_threads_stop(struct stopped_threads *threads, pid_t pid, uint64_t waiting_at,
		       bool may_stop);

/* Let them go on where they were, and free the list. */
void torsh_threads_continue(struct stopped_threads *threads);

/*
 * Let threads go on that did not stop in time, and have stopped since. Call now and then; costs
 * nothing if there are none.
 */
void torsh_threads_settle(void);

#endif
