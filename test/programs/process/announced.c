/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where children without a signal can't be made, as under an emulator of another CPU. `announced
 * COMMAND...` has the kernel refuse them and runs COMMAND; `announced` keeps blocks and prints what
 * it sees of children that are not its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_KEPT 5

static void *keep_some(void)
{
	return malloc(300);
}

static int look(void)
{
	sigset_t pending, blocked;

	for (int i = 0; i < N_KEPT; i++)
		if (!keep_some())
			return 2;
	sigpending(&pending);
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	printf("pending %d, blocked %d, ", sigismember(&pending, SIGCHLD),
	       sigismember(&blocked, SIGCHLD));
	printf("wait %d\n", wait(NULL) < 0 ? errno : 0);
	return 7;
}

static int refuse_silent_children(void)
{
	struct sock_filter ops[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(ops) / sizeof(*ops), .filter = ops};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int main(int n, char **words)
{
	(void)n;
	if (!words[1])
		return look();
	if (!refuse_silent_children())
		execvp(words[1], words + 1);
	return 3;
}
