/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/image/stopped_threads.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/writer/reachability/image/waiting_thread.h"

#define STOP_NS UINT64_C(100000000) /* for all threads together, and for each */
#define STOP_EACH_NS UINT64_C(50000)
#define STEP_NS 20000
#define HELD_MAX_NS UINT64_C(10000000000) /* that a handler of a signal is put off */
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

/* Returns whether the thread has ended, and only its process's end is missing. */
static bool is_zombie(pid_t tid)
{
	char path[64], text[512];
	const char *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return true;
	text[n] = '\0';
	name_end = strrchr(text, ')');
	return name_end && (name_end[2] == 'Z' || name_end[2] == 'X');
}

/* Its signal is delivered when it goes on. */
static int signal_of(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
}

/* Threads that did not stop in time: of all processes, on the tracer's thread. */
static struct stopped_threads late;

/* The thread stops as soon as it can. */
static int request_stop(struct stopped_thread *thread)
{
	if (is_known(&late, thread->tid))
		return -ETIMEDOUT;
	if (ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL))
		return errno == EPERM && is_zombie(thread->tid) ? -ESRCH : -errno;
	thread->is_late = true;
	ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
	return 0;
}

/* Add a set of registers: NT_PRSTATUS, or NT_PRFPREG, which has those of vectors too. */
static int add_registers(struct stopped_thread *thread, unsigned kind)
{
	struct iovec vector = {.iov_base = thread->registers + thread->n_registers,
			       .iov_len = (THREAD_REGISTERS_MAX - thread->n_registers) *
					  sizeof(uint64_t)};

	if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)(uintptr_t)kind, &vector))
		return -errno;
	thread->n_registers += (uint32_t)(vector.iov_len / sizeof(uint64_t));
	return 0;
}

/* A copy in progress may have pointers in registers of vectors alone. */
static int read_registers(struct stopped_thread *thread)
{
#if defined(__x86_64__)
	const size_t at = offsetof(struct user_regs_struct, rsp);
#else
	const size_t at = offsetof(struct user_regs_struct, sp);
#endif
	int result = add_registers(thread, NT_PRSTATUS);

	if (result)
		return result;
	thread->stack_pointer = thread->registers[at / sizeof(uint64_t)];
	return add_registers(thread, NT_PRFPREG);
}

static void add_thread(struct stopped_threads *threads, const struct stopped_thread *thread)
{
	threads->items = torsh_array_reserve(threads->items, threads->n, &threads->capacity,
					     sizeof(*threads->items));
	threads->items[threads->n++] = *thread;
}

/* Wait until the thread has stopped, and read its registers. */
static int finish_stop(struct stopped_thread *thread, uint64_t until_ns)
{
	int status = await_stop(thread->tid, until_ns);

	if (status < 0)
		return status;
	thread->is_late = false;
	thread->is_stopped = true;
	thread->signal = signal_of(status);
	return read_registers(thread);
}

/* Request a stop of the threads that are not in the list yet. Returns 0 or -errno. */
static int request_stops(struct stopped_threads *threads, const char *folder)
{
	DIR *tasks = opendir(folder);
	struct dirent *entry;
	int result = 0;

	if (!tasks)
		return -errno;
	while (!result && (entry = readdir(tasks))) {
		struct stopped_thread thread = {.tid = (pid_t)atoi(entry->d_name)};

		if (thread.tid <= 0 || is_known(threads, thread.tid))
			continue;
		result = request_stop(&thread);
		if (!result)
			add_thread(threads, &thread);
		else if (result == -ESRCH) /* it has ended */
			result = 0;
	}
	closedir(tasks);
	return result;
}

/* Stop the threads that are not yet. Returns their number, or -errno. */
static int stop_round(struct stopped_threads *threads, const char *folder, uint64_t until_ns)
{
	uint32_t first = threads->n, n = 0;
	int result = request_stops(threads, folder);

	until_ns += (uint64_t)(threads->n - first) * STOP_EACH_NS;
	for (uint32_t i = first; !result && i < threads->n; i++) {
		result = finish_stop(&threads->items[i], until_ns);
		n += !result;
		if (result == -ESRCH) {
			threads->items[i--] = threads->items[--threads->n];
			result = 0;
		}
	}
	return result ? result : (int)n;
}

/* Returns whether the process has one thread. */
static bool is_alone(const char *folder)
{
	struct stat status;

	return !stat(folder, &status) && status.st_nlink == 3;
}

/* ---- one that waits -------------------------------------------------------------------------- */

/* All lists whose threads are under ptrace. */
static struct stopped_threads *lists;

/* It has stopped before a signal: go on with that if no handler is to run, or none ran for long. */
static void pass_on(struct stopped_threads *threads)
{
	struct stopped_thread *thread = &threads->items[0];

	if (!torsh_waiting_thread_puts_off(thread->tid, thread->signal)) {
		ptrace(PTRACE_CONT, thread->tid, NULL, (void *)(intptr_t)thread->signal);
		thread->held_ns = 0;
	} else if (now_ns() - thread->held_ns >= HELD_MAX_NS) {
		ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)thread->signal);
		thread->held_ns = 0;
		thread->is_watched = false;
		threads->has_let_go = true;
	}
}

/* Returns whether the thread has changed: it stopped before a signal, or was killed. */
static bool has_changed(struct stopped_thread *thread, int *status)
{
	pid_t got = thread->is_stopped || thread->is_watched
			    ? waitpid(thread->tid, status, __WALL | WNOHANG)
			    : 0;

	if (got == thread->tid && !WIFSTOPPED(*status)) {
		thread->is_stopped = thread->is_watched = false;
		thread->held_ns = 0;
	}
	return got == thread->tid;
}

/* Threads that were killed stay until that was seen here: their process's parent waits for it. */
static void look_at(struct stopped_threads *threads)
{
	int status = 0;

	for (uint32_t i = 0; i < threads->n; i++) {
		struct stopped_thread *thread = &threads->items[i];

		if (has_changed(thread, &status) && thread->is_watched) {
			thread->signal = signal_of(status);
			thread->held_ns = now_ns();
		}
	}
	if (torsh_threads_hold_signal(threads))
		pass_on(threads);
}

/* The first of the list: under ptrace it stops before signals. Returns 0 once it waits. */
static int watch(struct stopped_threads *threads, const struct waiting_thread *waiting)
{
	struct stopped_thread *thread = &threads->items[0];
	const struct timespec step = {.tv_nsec = STEP_NS};
	uint64_t until_ns = now_ns() + STOP_NS;

	if (is_known(&late, thread->tid))
		return -ETIMEDOUT;
	if (ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL))
		return -errno;
	thread->is_watched = true;
	while (!torsh_waiting_thread_waits(thread->tid, waiting)) {
		if (now_ns() > until_ns)
			return -EAGAIN;
		nanosleep(&step, NULL);
		look_at(threads);
	}
	return 0;
}

static void remove_list(struct stopped_threads *threads)
{
	for (struct stopped_threads **at = &lists; *at; at = &(*at)->next) {
		if (*at == threads) {
			*at = threads->next;
			return;
		}
	}
}

/* ---- all of them ----------------------------------------------------------------------------- */

int torsh_threads_stop(struct stopped_threads *threads, pid_t pid,
		       const struct waiting_thread *waiting, bool may_stop)
{
	uint64_t until_ns = now_ns() + STOP_NS;
	char folder[64];
	bool is_only;
	pid_t tid;
	int n = 1;

	*threads = (struct stopped_threads){0};
	snprintf(folder, sizeof(folder), "/proc/%d/task", (int)pid);
	is_only = waiting->stack_pointer && is_alone(folder);
	tid = is_only ? pid : waiting->tid;
	if (!is_only && !may_stop)
		return -EACCES;
	if (waiting->stack_pointer && tid)
		add_thread(threads, &(struct stopped_thread){
					    .tid = tid, .stack_pointer = waiting->stack_pointer});
	if (is_only)
		return 0;
	threads->next = lists;
	lists = threads;
	for (uint32_t i = 0; n > 0 && i < N_ROUNDS_MAX; i++)
		n = stop_round(threads, folder, until_ns);
	if (!n && torsh_threads_wait(threads))
		n = watch(threads, waiting);
	if (!n && threads->n)
		return 0;
	torsh_threads_continue(threads);
	return n < 0 ? n : -ETIMEDOUT;
}

static bool has_gone_on(const struct stopped_thread *thread)
{
	int status;
	pid_t got = waitpid(thread->tid, &status, __WALL | WNOHANG);

	if (got == 0)
		return false;
	if (got == thread->tid && WIFSTOPPED(status))
		ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)signal_of(status));
	return true;
}

void torsh_threads_settle(void)
{
	for (struct stopped_threads *threads = lists; threads; threads = threads->next)
		look_at(threads);
	for (uint32_t i = late.n; i-- > 0;) {
		if (has_gone_on(&late.items[i]))
			late.items[i] = late.items[--late.n];
	}
}

/* It runs, and can be let go once it has stopped. */
static void stop_to_let_go(struct stopped_thread *thread)
{
	int status;

	ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
	status = await_stop(thread->tid, now_ns() + STOP_NS);
	thread->is_stopped = status >= 0;
	thread->is_late = status == -ETIMEDOUT;
	thread->signal = status < 0 ? 0 : signal_of(status);
}

static void let_go(struct stopped_thread *thread)
{
	if (thread->is_watched && !thread->held_ns)
		stop_to_let_go(thread);
	/* Otherwise it was just killed. */
	if ((thread->is_stopped || thread->held_ns) &&
	    ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)thread->signal))
		thread->is_late = true;
	if (thread->is_late)
		add_thread(&late, thread);
}

void torsh_threads_continue(struct stopped_threads *threads)
{
	remove_list(threads);
	for (uint32_t i = 0; i < threads->n; i++)
		let_go(&threads->items[i]);
	free(threads->items);
	*threads = (struct stopped_threads){0};
}
