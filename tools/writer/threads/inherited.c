/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/inherited.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IOPRIO_WHO_PROCESS 1 /* linux/ioprio.h, for older headers */
#define IOPRIO_CLASS_SHIFT 13
#define IOPRIO_CLASS_RT 1

/*
 * Batch systems, systemd and container runtimes end a job by a signal to all its processes. The
 * writer ignores it and ends after its targets. Signals for faults and for children keep their
 * actions.
 */
static void ignore_signals(void)
{
	static const int kept[] = {SIGILL,  SIGTRAP, SIGABRT, SIGBUS, SIGFPE,
				   SIGSEGV, SIGSYS,  SIGCHLD, SIGCONT};
	sigset_t none;

	for (int number = 1; number <= SIGRTMAX; number++) {
		size_t i = 0;

		while (i < sizeof(kept) / sizeof(*kept) && kept[i] != number)
			i++;
		/* SIGKILL, SIGSTOP and the C library's own signals cannot be ignored. */
		if (i == sizeof(kept) / sizeof(*kept))
			signal(number, SIG_IGN);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A target survives the writer's end, but without the target there is nothing to record. */
static void go_first_when_memory_runs_out(void)
{
	static const char most[] = "1000";
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* On failure the kernel compares sizes, as it would without this. */
	(void)!write(fd, most, sizeof(most) - 1);
	close(fd);
}

/*
 * This affinity was chosen for the target's threads: the writer would take CPU time from them.
 * Under SCHED_BATCH a writer that wakes does not preempt a running thread, but waits for an idle
 * CPU or the end of the time slice. A lower priority could not be raised again while rings are
 * full.
 */
static void drop_priorities(void)
{
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	if (policy != SCHED_BATCH && policy != SCHED_IDLE)
		sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	if (syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) >> IOPRIO_CLASS_SHIFT == IOPRIO_CLASS_RT)
		syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0);
}

void torsh_inherited_drop(void)
{
	ignore_signals();
	go_first_when_memory_runs_out();
	drop_priorities();
}
