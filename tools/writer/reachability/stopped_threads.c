/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/stopped_threads.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "tools/base/containers/array.h"

#define STOP_NS UINT64_C(100000000) /* for all threads together */
#define STEP_NS 20000
#define N_ROUNDS_MAX 64u /* over the threads: a process may go on creating some until it stops */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_known(const struct stopped_threads *threads, pid_t tid)
{
	for (uint32_t i = threads->n; i-- > 0;) {
		if (threads->items[i].tid == tid)
			return true;
	}
	return false;
}

/* Wait until the thread has stopped. */
static int await_stop(pid_t tid, uint64_t until_ns)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	int status;

	for (;;) {
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == tid)
			return WIFSTOPPED(status) ? status : -ESRCH;
		if (now_ns() > until_ns)
			return -ETIMEDOUT;
		nanosleep(&step, NULL);
	}
}

/* Its signal is delivered when it goes on. */
static int signal_of(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
}

static int stop_thread(struct stopped_thread *thread, uint64_t until_ns)
{
	int status;

	if (ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL))
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL))
		return -errno;
	status = await_stop(thread->tid, until_ns);
	thread->signal = status < 0 ? 0 : signal_of(status);
	return status < 0 ? status : 0;
}

static int read_registers(struct stopped_thread *thread)
{
	struct user_regs_struct registers;
	struct iovec vector = {.iov_base = &registers, .iov_len = sizeof(registers)};
	const uint64_t *words = (const uint64_t *)&registers;

	if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)(uintptr_t)NT_PRSTATUS, &vector))
		return -errno;
#if defined(__x86_64__)
	thread->stack_pointer = registers.rsp;
#else
	thread->stack_pointer = registers.sp;
#endif
	thread->n_registers = (uint32_t)(sizeof(registers) / sizeof(*words));
	if (thread->n_registers > THREAD_REGISTERS_MAX)
		thread->n_registers = THREAD_REGISTERS_MAX;
	for (uint32_t i = 0; i < thread->n_registers; i++)
		thread->registers[i] = words[i];
	return 0;
}

/* Stop the threads that are not yet. Returns their number, or -errno. */
static int stop_round(struct stopped_threads *threads, const char *folder, uint64_t until_ns)
{
	DIR *tasks = opendir(folder);
	struct dirent *entry;
	int n = 0, result = 0;

	if (!tasks)
		return -errno;
	while (!result && (entry = readdir(tasks))) {
		struct stopped_thread thread = {.tid = (pid_t)atoi(entry->d_name)};

		if (thread.tid <= 0 || is_known(threads, thread.tid))
			continue;
		result = stop_thread(&thread, until_ns);
		if (result == -ESRCH) { /* it has ended */
			result = 0;
			continue;
		}
		if (!result || result == -ETIMEDOUT) {
			threads->items = torsh_array_reserve(threads->items, threads->n,
							     &threads->capacity,
							     sizeof(*threads->items));
			if (!result)
				result = read_registers(&thread);
			threads->items[threads->n++] = thread;
			n++;
		}
	}
	closedir(tasks);
	return result ? result : n;
}

int torsh_threads_stop(struct stopped_threads *threads, pid_t pid)
{
	uint64_t until_ns = now_ns() + STOP_NS;
	char folder[64];
	int n = 1;

	*threads = (struct stopped_threads){0};
	snprintf(folder, sizeof(folder), "/proc/%d/task", (int)pid);
	for (uint32_t i = 0; n > 0 && i < N_ROUNDS_MAX; i++)
		n = stop_round(threads, folder, until_ns);
	if (!n && threads->n)
		return 0;
	torsh_threads_continue(threads);
	return n < 0 ? n : -ETIMEDOUT;
}

void torsh_threads_continue(struct stopped_threads *threads)
{
	for (uint32_t i = 0; i < threads->n; i++)
		ptrace(PTRACE_DETACH, threads->items[i].tid, NULL,
		       (void *)(intptr_t)threads->items[i].signal);
	free(threads->items);
	*threads = (struct stopped_threads){0};
}
