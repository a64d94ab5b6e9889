/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Programs that take system calls from themselves: sandbox HOW WAY. For every call but those that
 * the way itself takes, and futex, mmap, munmap and madvise, the filter ends the process; HOW
 * errno: it is refused; trap: a handler ends it with 98; past: the filter is installed past the C
 * library; together: in all threads; refused: the kernel refuses it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/sys.h"

#define N_KEPT 5
#define N_PAIRS 400000
#define N_CALLS_MAX 32
#define N_TOUCHED_BYTES (64u << 20)
#define END (-1)

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

static const int of_memory[] = {SYS_futex, SYS_mmap,	  SYS_munmap, SYS_madvise,
				SYS_brk,   SYS_getrandom, END};
static const int of_exit[] = {SYS_exit_group, END};
static const int of_fork[] = {SYS_clone, SYS_set_robust_list, SYS_rseq, SYS_rt_sigprocmask,
			      SYS_wait4, SYS_exit_group,      END};
static const int of_exec[] = {SYS_execve, SYS_exit_group, END};
static const int of_thread[] = {
	SYS_clone3,	    SYS_clone,	      SYS_mprotect, SYS_rseq,	    SYS_set_robust_list,
	SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_exit,	    SYS_exit_group, END};

static uint32_t otherwise = SECCOMP_RET_KILL_PROCESS;

static size_t add_calls(struct sock_filter *ops, size_t n, const int *calls, uint32_t answer)
{
	for (; *calls != END; calls++) {
		ops[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)*calls,
							0, 1);
		ops[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
	}
	return n;
}

static void install(const char *how, struct sock_fprog *program)
{
	long result;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		exit(90);
	if (!strcmp(how, "past"))
		result = TORSH_SYS(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program, 0, 0, 0);
	else if (!strcmp(how, "together"))
		result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
				 program);
	else if (!strcmp(how, "refused"))
		result = !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, ~0u, program);
	else if (strcmp(how, "syscall") != 0)
		result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0);
	else
		result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program);
	if (result)
		exit(91);
}

static void allow(const char *how, const int *calls)
{
	struct sock_filter ops[4 + 2 * N_CALLS_MAX];
	struct sock_fprog program = {.filter = ops};
	size_t n = 0;

	ops[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						offsetof(struct seccomp_data, nr));
	n = add_calls(ops, n, of_memory, SECCOMP_RET_ALLOW);
	n = add_calls(ops, n, calls, SECCOMP_RET_ALLOW);
	ops[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	program.len = (unsigned short)n;
	install(how, &program);
}

static void deny(const char *how, const int *calls, uint32_t answer)
{
	struct sock_filter ops[8];
	struct sock_fprog program = {.filter = ops};
	size_t n = 0;

	ops[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						offsetof(struct seccomp_data, nr));
	n = add_calls(ops, n, calls, answer);
	ops[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)n;
	install(how, &program);
}

static void *keep_in_sandbox(void)
{
	return malloc(300);
}

static void *keep_in_child(void)
{
	return malloc(400);
}

static void keep(void)
{
	for (int i = 0; i < N_KEPT; i++)
		if (!keep_in_sandbox())
			_exit(92);
}

static int exit_in_it(const char *how)
{
	allow(how, of_exit);
	keep();
	exit(11);
}

static int leave_in_it(const char *how)
{
	allow(how, of_exit);
	keep();
	_exit(12);
}

/* Fills rings many times over. */
static int allocate_in_it(const char *how)
{
	allow(how, of_exit);
	for (int i = 0; i < N_PAIRS; i++) {
		void *volatile block = malloc(64);

		free(block);
	}
	keep();
	return 13;
}

static int run_child(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		if (!keep_in_child())
			_exit(93);
		_exit(14);
	}
	keep();
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 94;
}

static int fork_in_it(const char *how)
{
	allow(how, of_fork);
	return run_child();
}

/* Takes nothing that anybody here needs, by an error. */
static int fork_in_a_harmless_one(const char *how)
{
	static const int calls[] = { SYS_ptrace, SYS_reboot, END };

	deny(how, calls, SECCOMP_RET_ERRNO | EPERM);
	return run_child();
}

/*
 * Its resident set grows, which shows a later reader of its status; reports that, and waits for a
 * command to go on.
 */
static int be_looked_at(void)
{
	char letter = '.';

	if (mmap(NULL, N_TOUCHED_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED)
		return 0;
	return write(STDOUT_FILENO, &letter, 1) == 1 && read(STDIN_FILENO, &letter, 1) == 1;
}

static const int taken_from_nobody[] = {SYS_reboot, END};

static void *deny_it(void *how)
{
	deny(how, taken_from_nobody, SECCOMP_RET_ERRNO | EPERM);
	return NULL;
}

/*
 * HOW together: another thread adds it for all. Other forms are followed by one that is added past
 * the C library: both; refused, where the kernel takes no first one; apart, where another thread
 * has the first one alone.
 */
static int go_on_in_a_harmless_one(const char *how)
{
	bool is_alone =
		!strcmp(how, "prctl") || !strcmp(how, "syscall") || !strcmp(how, "together");
	pthread_t thread;
	int status;

	if (!be_looked_at())
		return 95;
	if (!strcmp(how, "together") || !strcmp(how, "apart")) {
		if (pthread_create(&thread, NULL, deny_it, (void *)how))
			return 95;
		pthread_join(thread, NULL);
	} else {
		deny_it((void *)how);
	}
	if (!is_alone)
		deny_it("past");
	if (!be_looked_at())
		return 95;
	status = run_child();
	execl("/proc/self/exe", "sandbox", "prctl", status == 14 ? "harmless" : "failed", NULL);
	return 96;
}

/* Of all calls it takes one that only the start of a recording makes. */
static int become_another_in_it(const char *how)
{
	static const int calls[] = { SYS_memfd_create, END };

	keep();
	deny(how, calls, SECCOMP_RET_KILL_PROCESS);
	execl("/bin/echo", "echo", "still here", NULL);
	return 96;
}

/* Of a program that isn't there: it goes on. */
static int exec_in_it(const char *how)
{
	allow(how, of_exec);
	execl("/nonexistent/program", "program", NULL);
	keep();
	return errno == ENOENT ? 18 : 96;
}

static void *run_thread(void *unused)
{
	keep();
	return unused;
}

static _Atomic bool is_filtered;

/* Allocates before, and then ends without the filter, which is the other thread's alone. */
static void *run_earlier_thread(void *unused)
{
	void *volatile block = malloc(64);

	free(block);
	while (!is_filtered)
		;
	keep();
	return unused;
}

static int beside_it(const char *how)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_earlier_thread, NULL))
		return 95;
	allow(how, of_thread);
	is_filtered = true;
	pthread_join(thread, NULL);
	return 17;
}

static int thread_in_it(const char *how)
{
	pthread_t thread;

	allow(how, of_thread);
	if (pthread_create(&thread, NULL, run_thread, NULL))
		return 95;
	pthread_join(thread, NULL);
	return 15;
}

/* Read, write and exit are all that is left. */
static int strict(const char *how)
{
	void *volatile block;
	int result;

	free(malloc(64));
	keep();
	if (!strcmp(how, "prctl"))
		result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
	else
		result = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
	for (int i = 0; i < 1000; i++) {
		block = malloc(64);
		free(block);
	}
	syscall(SYS_exit, result ? 96 : 16);
	return 97;
}

static const struct way {
	const char *name;
	int (*run)(const char *how);
} ways[] = {
	{"exit", exit_in_it},
	{"leave", leave_in_it},
	{"allocate", allocate_in_it},
	{"fork", fork_in_it},
	{"harmless", fork_in_a_harmless_one},
	{"on", go_on_in_a_harmless_one},
	{"exec", exec_in_it},
	{"become", become_another_in_it},
	{"thread", thread_in_it},
	{"beside", beside_it},
	{"strict", strict},
};

static void on_trap(int number)
{
	(void)number;
	_exit(98);
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "errno"))
		otherwise = SECCOMP_RET_ERRNO | EPERM;
	if (argc > 2 && !strcmp(argv[1], "trap")) {
		otherwise = SECCOMP_RET_TRAP;
		signal(SIGSYS, on_trap);
	}
	for (size_t i = 0; argc > 2 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!strcmp(argv[2], ways[i].name))
			return ways[i].run(argv[1]);
	}
	return 2;
}
