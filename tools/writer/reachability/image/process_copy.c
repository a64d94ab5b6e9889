/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/image/process_copy.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tools/writer/input/process_info.h"

#define STEP_NS 20000000 /* the thread has other processes, too */

static void wake(void *word, int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}

void torsh_process_copy_request(_Atomic uint32_t *answer)
{
	/* Pairs with the acquire in await_answer of agent/session/exit_wait.c. */
	atomic_store_explicit(answer, EXIT_COPY_WANTED, memory_order_release);
	wake(answer, 1);
}

static int open_copy(struct process_copy *copy, pid_t process)
{
	struct process_memory of_process, of_copy;

	copy->pidfd = (int)syscall(SYS_pidfd_open, copy->pid, 0);
	if (copy->pidfd < 0)
		return -errno;
	if (torsh_process_read_memory(process, &of_process) ||
	    torsh_process_read_memory(copy->pid, &of_copy))
		return -ESRCH;
	/* The process may have told the kernel not to copy some. */
	return of_process.data_bytes == of_copy.data_bytes ? 0 : -ENOMEM;
}

int torsh_process_copy_await(struct process_copy *copy, struct channel_copy *channel, pid_t process)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	int32_t pid;
	int result;

	/* Pairs with the release in copy_process of agent/session/exit_wait.c. */
	pid = atomic_load_explicit(&channel->pid, memory_order_acquire);
	if (!pid) {
		syscall(SYS_futex, &channel->pid, FUTEX_WAIT, 0, &step, NULL, 0);
		pid = atomic_load_explicit(&channel->pid, memory_order_acquire);
	}
	if (!pid)
		return -EAGAIN;
	/* Its reason does not matter, and may be the one that is meant for "not yet" here. */
	if (pid < 0)
		return -ECHILD;
	*copy = (struct process_copy){.channel = channel, .pid = pid, .pidfd = -1};
	result = open_copy(copy, process);
	if (result)
		torsh_process_copy_end(copy);
	return result;
}

bool torsh_process_copy_is_there(const struct process_copy *copy)
{
	struct pollfd ended = {.fd = copy->pidfd, .events = POLLIN};

	return poll(&ended, 1, 0) == 0;
}

void torsh_process_copy_refuse(struct channel_copy *channel, struct process_copy *copy)
{
	struct process_copy none = {.channel = channel, .pidfd = -1};

	torsh_process_copy_end(copy->channel ? copy : &none);
}

void torsh_process_copy_end(struct process_copy *copy)
{
	/* Pairs with the acquire in await_reading of agent/session/exit_copy.c. */
	atomic_store_explicit(&copy->channel->is_read, 1, memory_order_release);
	wake(&copy->channel->is_read, INT_MAX);
	if (copy->pidfd >= 0)
		close(copy->pidfd);
	*copy = (struct process_copy){.pidfd = -1};
}
