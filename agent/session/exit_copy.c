/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/exit_copy.h"

#include <errno.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "shim/sys.h"

#define STACK_BYTES 16384u
#define STEP_NS UINT64_C(100000000)
#define SILENT_STEPS_MAX 600u /* without a heartbeat of the writer: a minute */
#define STEPS_MAX 36000u /* in any case: an hour */
#define ALL_SIGNALS UINT64_MAX

/*
 * The starter's stack, used once at a time. It stays, because the writer compares how much memory
 * the process and its copy have.
 */
static struct {
	alignas(16) char bytes[STACK_BYTES];
	_Atomic bool is_used;
} stack;

struct making {
	struct channel_header *header;
	struct channel_copy *copy;
	bool names_writer;
	long pid; /* stored by the starter, which shares the memory */
};

/* If the kernel is short of memory it takes the copy's first. */
static void offer_memory(void)
{
	static const char most[] = "1000";
	long fd = TORSH_SYS(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY, 0, 0, 0);

	if (fd < 0)
		return;
	TORSH_SYS(SYS_write, fd, most, sizeof(most) - 1, 0, 0, 0);
	TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
}

static bool is_gone(uint32_t pid)
{
	return pid && TORSH_SYS(SYS_kill, pid, 0, 0, 0, 0, 0) == -ESRCH;
}

/* Wait until the writer has read the copy, or is gone. */
static void await_reading(const struct making *making, uint32_t writer)
{
	uint32_t heartbeat = 0, n_silent = 0;

	for (uint32_t n = 0; n < STEPS_MAX && n_silent < SILENT_STEPS_MAX; n++) {
		uint32_t now =
			atomic_load_explicit(&making->header->heartbeat, memory_order_relaxed);

		/* Pairs with the release in torsh_process_copy_end of the writer. */
		if (atomic_load_explicit(&making->copy->is_read, memory_order_acquire) ||
		    atomic_load_explicit(&making->header->writer_state, memory_order_relaxed) !=
			    CHANNEL_WRITER_ATTACHED ||
		    is_gone(writer))
			return;
		n_silent = now == heartbeat ? n_silent + 1 : 0;
		heartbeat = now;
		torsh_sys_futex_wait(&making->copy->is_read, 0, STEP_NS);
	}
}

static void live(const struct making *making)
{
	uint32_t writer = atomic_load_explicit(&making->header->writer_pid, memory_order_relaxed);

	if (making->names_writer && writer)
		TORSH_SYS(SYS_prctl, PR_SET_PTRACER, writer, 0, 0, 0, 0);
	TORSH_SYS(SYS_close_range, 0, UINT32_MAX, 0, 0, 0, 0);
	TORSH_SYS(SYS_setsid, 0, 0, 0, 0, 0, 0);
	TORSH_SYS(SYS_prctl, PR_SET_NAME, "torsh-copy", 0, 0, 0, 0);
	offer_memory();
	await_reading(making, writer);
}

/* The child between the process and its copy, which is an orphan when this one has ended. */
static void start(void *argument)
{
	struct making *making = argument;

	making->pid = TORSH_SYS(SYS_clone, CLONE_UNTRACED, 0, 0, 0, 0, 0);
	if (making->pid == 0)
		live(making);
	for (;;)
		TORSH_SYS(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

/* Whether orphans below this process become its children. */
static bool takes_orphans(void)
{
	int is_reaper = 0;

	TORSH_SYS(SYS_prctl, PR_GET_CHILD_SUBREAPER, &is_reaper, 0, 0, 0, 0);
	return is_reaper || torsh_sys_getpid() == 1;
}

static void await_starter(long pid)
{
	long waited;

	do
		waited = TORSH_SYS(SYS_wait4, pid, 0, __WALL, 0, 0, 0);
	while (waited == -EINTR);
}

int torsh_exit_copy_make(struct channel_header *header, struct channel_copy *copy,
			 bool names_writer)
{
	struct making making = {
		.header = header, .copy = copy, .names_writer = names_writer, .pid = -ECHILD};
	uint64_t all = ALL_SIGNALS, mask = 0;
	long starter;

	/* Of no descriptor: whether the call is there. */
	if (TORSH_SYS(SYS_close_range, UINT32_MAX, UINT32_MAX, 0, 0, 0, 0) < 0)
		return -ENOSYS;
	if (takes_orphans())
		return -EBUSY;
	if (atomic_exchange_explicit(&stack.is_used, true, memory_order_acquire))
		return -EBUSY;
	TORSH_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(mask), 0, 0);
	/* It shares this memory, so that what is copied is what this process has. */
	starter = torsh_cpu_clone(CLONE_VM | CLONE_VFORK | CLONE_UNTRACED,
				  stack.bytes + STACK_BYTES, start, &making);
	if (starter > 0)
		await_starter(starter);
	TORSH_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, sizeof(mask), 0, 0);
	atomic_store_explicit(&stack.is_used, false, memory_order_release);
	return (int)(starter < 0 ? starter : making.pid);
}
