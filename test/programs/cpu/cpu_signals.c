/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * cpu_signals WHAT: what a program sees of signals, timers, descriptors and errno while it burns
 * processor time; printed, to be compared with and without samples.
 *	state	actions, masks, pending ones, timers, descriptors, threads
 *	waits	blocks all signals, burns, and waits for any of them
 *	takes	handles SIGSTKFLT and all real-time signals, late, and sends them to itself
 *	one	blocks one of these after the other, sends it to itself and waits for it
 *	fault	handles SIGSTKFLT, and no other
 *	kill N	sends itself signal N, which has no handler
 *	spawn	a child's mask, after all signals were blocked
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTORS 512 /* the agent's own are above */

static volatile uint64_t sink;
static volatile sig_atomic_t n_taken;

/* The sampler takes one of these: SIGSTKFLT, then the real-time signals from the highest on. */
static int n_signals(void)
{
	return SIGRTMAX - SIGRTMIN + 2;
}

static int signal_at(int i)
{
	return i ? SIGRTMAX - i + 1 : SIGSTKFLT;
}

static void burn(double seconds)
{
	struct timespec now;
	double until;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	until = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + seconds;
	do {
		for (int i = 0; i < 100000; i++)
			sink += (uint64_t)i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((double)now.tv_sec + (double)now.tv_nsec * 1e-9 < until);
}

static void take(int number)
{
	(void)number;
	n_taken++;
}

static void print_set(const char *what, const sigset_t *set)
{
	printf("%s:", what);
	for (int i = 1; i <= SIGRTMAX; i++)
		if (sigismember(set, i) == 1)
			printf(" %d", i);
	putchar('\n');
}

static void print_actions(void)
{
	struct sigaction action;

	for (int i = 1; i <= SIGRTMAX; i++)
		if (!sigaction(i, NULL, &action) && action.sa_handler != SIG_DFL)
			printf("action %d: %s\n", i,
			       action.sa_handler == SIG_IGN ? "ignored" : "a handler");
}

static void print_folder(const char *path)
{
	DIR *folder = opendir(path);
	int n = 0;

	for (struct dirent *entry; folder && (entry = readdir(folder));)
		n += atoi(entry->d_name) < DESCRIPTORS || !strcmp(path, "/proc/self/task");
	if (folder)
		closedir(folder);
	printf("%s: %d\n", path, n);
}

static void show_state(void)
{
	struct itimerval timer = {.it_value = {.tv_sec = 1000}}, left;
	sigset_t set, few;

	sigemptyset(&few);
	sigaddset(&few, SIGUSR1);
	setitimer(ITIMER_REAL, &timer, NULL);
	errno = 77;
	burn(0.1);
	printf("errno %d\n", errno);
	print_actions();
	sigprocmask(SIG_BLOCK, &few, &set);
	print_set("mask", &set);
	raise(SIGUSR1);
	burn(0.05);
	sigpending(&set);
	print_set("pending", &set);
	getitimer(ITIMER_REAL, &left);
	printf("real timer %d\n", left.it_value.tv_sec > 0);
	getitimer(ITIMER_PROF, &left);
	printf("profiling timer %ld\n", (long)left.it_value.tv_sec + left.it_value.tv_usec);
	print_folder("/proc/self/fd");
	print_folder("/proc/self/task");
}

static void *block_and_wait(void *unused)
{
	struct timespec no_time = {0};
	sigset_t all, before;
	siginfo_t info;
	int fd, result;
	char bytes[sizeof(struct signalfd_siginfo)];

	(void)unused;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	burn(0.1);
	sigpending(&before);
	print_set("pending", &before);
	result = sigtimedwait(&all, &info, &no_time);
	printf("sigtimedwait %d %d\n", result, result < 0 ? errno : 0);
	fd = signalfd(-1, &all, SFD_NONBLOCK);
	result = (int)read(fd, bytes, sizeof(bytes));
	printf("signalfd %d %d\n", result, result < 0 ? errno : 0);
	close(fd);
	raise(SIGUSR2);
	sigwait(&all, &result);
	printf("sigwait %d\n", result);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	print_set("mask", &before);
	return NULL;
}

static void show_waits(void)
{
	pthread_t thread;
	sigset_t all, now;

	pthread_create(&thread, NULL, block_and_wait, NULL);
	pthread_join(thread, NULL);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &now);
	print_set("mask before", &now);
	pthread_create(&thread, NULL, block_and_wait, NULL);
	pthread_join(thread, NULL);
	burn(0.05);
	sigprocmask(SIG_UNBLOCK, &all, &now);
	print_set("mask then", &now);
	burn(0.05);
	print_actions();
}

static void show_takes(void)
{
	struct sigaction action = {.sa_handler = take};

	burn(0.1);
	for (int i = 0; i < n_signals(); i++)
		if (sigaction(signal_at(i), &action, NULL))
			printf("sigaction %d: %d\n", signal_at(i), errno);
	burn(0.1);
	printf("taken %d\n", (int)n_taken);
	for (int i = 0; i < n_signals(); i++)
		raise(signal_at(i));
	printf("taken %d of %d\n", (int)n_taken, n_signals());
	print_actions();
}

static void show_one(void)
{
	struct timespec no_time = {0};
	siginfo_t info;
	sigset_t one;

	for (int k = 0; k < n_signals(); k++) {
		int i = signal_at(k);
		union sigval value = {.sival_int = i};

		sigemptyset(&one);
		sigaddset(&one, i);
		sigprocmask(SIG_BLOCK, &one, NULL);
		burn(0.005);
		sigqueue(getpid(), i, value);
		burn(0.005);
		if (sigtimedwait(&one, &info, &no_time) != i || info.si_value.sival_int != i)
			printf("signal %d did not come\n", i);
	}
	sigprocmask(SIG_BLOCK, NULL, &one);
	print_set("mask", &one);
}

static void show_fault(void)
{
	struct sigaction action = {.sa_handler = take}, before;

	burn(0.05);
	sigaction(SIGSTKFLT, &action, &before);
	printf("before %d\n", before.sa_handler == SIG_DFL);
	burn(0.1);
	printf("taken %d\n", (int)n_taken);
	raise(SIGSTKFLT);
	printf("taken %d\n", (int)n_taken);
	print_actions();
}

static void show_child(void)
{
	char *const command[] = {"grep", "SigBlk", "/proc/self/status", NULL};
	sigset_t all;
	pid_t child;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	burn(0.05);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		execvp(*command, command);
		_exit(1);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "state";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "state"))
		show_state();
	else if (!strcmp(what, "waits"))
		show_waits();
	else if (!strcmp(what, "takes"))
		show_takes();
	else if (!strcmp(what, "one"))
		show_one();
	else if (!strcmp(what, "fault"))
		show_fault();
	else if (!strcmp(what, "spawn"))
		show_child();
	else if (!strcmp(what, "kill") && argc > 2) {
		burn(0.05);
		raise(atoi(argv[2]));
		burn(0.05);
		puts("alive");
	}
	return 0;
}
