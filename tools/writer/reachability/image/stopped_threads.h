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

#define THREAD_REGISTERS_MAX 112u /* general ones, and 512 to 528 bytes of others */

struct stopped_thread {
	pid_t tid;
	bool is_stopped; /* false: it waits by itself, or is late */
	bool is_watched; /* it waits by itself, under ptrace */
	uint64_t held_ns; /* likewise, and it stopped then before a signal; 0: it runs */
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
	bool has_let_go; /* the one that waits, before the others: a handler may have run in it */
	struct stopped_threads *next; /* of another process */
};

/* A thread that waits for what comes: it is not stopped. */
struct waiting_thread {
	pid_t tid; /* 0: not known */
	uint64_t stack_pointer; /* its registers are above that; 0: no thread waits */
	uint32_t words[2]; /* where the futexes are that it may wait on, from a page's begin */
};

/*
 * Stop all threads of the process, and those that they create meanwhile, but for one that waits and
 * whose number is known, or that is the only one: that is the first of the list. Beside others it
 * is watched: no handler of a signal begins in it for 10 s. The list stays where it is until
 * torsh_threads_continue. may_stop: a system call that is interrupted may begin again, which a
 * filter of system calls can forbid. Returns 0, or -errno with none stopped: -EACCES without
 * may_stop, -EPERM if the system forbids ptrace or a debugger has the process, -ETIMEDOUT if a
 * thread can't be stopped, for example in a system call that nothing interrupts, -EAGAIN if the one
 * that waits runs a handler.
 */
int torsh_threads_stop(struct stopped_threads *threads, pid_t pid,
		       const struct waiting_thread *waiting, bool may_stop);

/* Returns whether the first of them was not stopped, because it waits. */
static inline bool torsh_threads_wait(const struct stopped_threads *threads)
{
	return threads->n && !threads->items[0].is_stopped;
}

/*
 * Returns whether the one that waits has stopped before a signal, and can't do anything until all
 * go on.
 */
static inline bool torsh_threads_hold_signal(const struct stopped_threads *threads)
{
	return threads->n && threads->items[0].held_ns;
}

/* Let them go on where they were, and free the list. */
void torsh_threads_continue(struct stopped_threads *threads);

/*
 * Let threads go on that did not stop in time, and have stopped since. Pass signals on to those
 * that are watched, if no handler is to run. See that threads were killed, for which the parent of
 * their process waits. Call now and then; costs nothing if there are none.
 */
void torsh_threads_settle(void);

#endif
