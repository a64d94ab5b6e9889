/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a sample of the processor costs, and how much slower samples make a program.
 *
 *	sample handler DEPTH N
 *		sends itself N of the agent's own signals, so many frames deep, as its timer
 *		would, and N of a signal whose handler does nothing. Prints the ns of the
 *		thread's processor time that each of both took: their difference is the
 *		handler's work. Nothing about the agent's where there is none.
 *	sample changing DEPTH N
 *		likewise, each below other calls than the one before: no frame of its stack is
 *		known from it. What the calls take is in both figures.
 *	sample burn DEPTH N
 *		computes N times the same, so many frames deep. Prints the ns that each took, of
 *		time and, on the last line, of its processor time.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TURNS 20000

static const char *what;
static long n_times;
static int depth;
static int agent_signal;
static void *agent_mark;
static double agent_ns, empty_ns, burn_ns, wall_ns;

static double clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The signal of the agent's timer of this thread, and the value that its handler expects. */
static void find_timer(void)
{
	FILE *timers = fopen("/proc/self/timers", "r");
	char line[256];

	while (timers && fgets(line, sizeof(line), timers))
		sscanf(line, "signal: %d/%p", &agent_signal, &agent_mark);
	if (timers)
		fclose(timers);
}

static void do_nothing(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
}

static void send_one(int number, siginfo_t *info)
{
	static pid_t pid, tid;

	pid = pid ? pid : getpid();
	tid = tid ? tid : (pid_t)syscall(SYS_gettid);
	syscall(SYS_rt_tgsigqueueinfo, pid, tid, number, info);
}

/* The same calls from other places. */
#define WAY(name)                                                                          \
	__attribute__((noinline)) static int name(int levels, int number, siginfo_t *info) \
	{                                                                                  \
		volatile int below;                                                        \
                                                                                           \
		if (levels > 0)                                                            \
			below = name(levels - 1, number, info);                            \
		else                                                                       \
			below = (send_one(number, info), 0);                               \
		return below + 1;                                                          \
	}
WAY(one_way)
WAY(other_way)
#undef WAY

static double send(int number, void *mark)
{
	bool is_changing = strcmp(what, "changing") == 0;
	siginfo_t info;
	double begin_ns;

	memset(&info, 0, sizeof(info));
	info.si_signo = number;
	info.si_code = SI_TIMER;
	info.si_value.sival_ptr = mark;
	begin_ns = cpu_ns();
	for (long i = 0; i < n_times; i++) {
		if (!is_changing)
			send_one(number, &info);
		else if (i % 2)
			one_way(depth, number, &info);
		else
			other_way(depth, number, &info);
	}
	return (cpu_ns() - begin_ns) / (double)n_times;
}

static void measure_handler(void)
{
	const struct sigaction nothing = {.sa_sigaction = do_nothing,
					  .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

	sigaction(SIGRTMIN, &nothing, NULL);
	for (int i = 0; i < 2; i++) {
		empty_ns = send(SIGRTMIN, NULL);
		agent_ns = agent_signal ? send(agent_signal, agent_mark) : 0;
	}
}

static void burn(void)
{
	double begin_ns = cpu_ns(), started_ns = clock_ns(CLOCK_MONOTONIC);

	for (long i = 0; i < n_times; i++) {
		volatile uint64_t sum = (uint64_t)i;

		for (int turn = 0; turn < TURNS; turn++)
			sum = sum * 6364136223846793005u + 1442695040888963407u;
	}
	burn_ns = (cpu_ns() - begin_ns) / (double)n_times;
	wall_ns = (clock_ns(CLOCK_MONOTONIC) - started_ns) / (double)n_times;
}

/* Each level has its own frame: the result is used after the call. */
__attribute__((noinline)) static int descend(int levels)
{
	volatile int below;

	if (levels > 0)
		below = descend(levels - 1);
	else if (strcmp(what, "burn") == 0)
		below = (burn(), 0);
	else
		below = (measure_handler(), 0);
	return below + 1;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	what = argv[1];
	n_times = atol(argv[3]);
	find_timer();
	depth = atoi(argv[2]);
	/* Where they change, the frames are further in. */
	descend(strcmp(what, "changing") == 0 ? 0 : depth);
	if (strcmp(what, "burn") == 0) {
		printf("wall %.2f\n%.2f\n", wall_ns, burn_ns);
		return 0;
	}
	if (agent_signal)
		printf("agent %.2f\n", agent_ns);
	printf("empty %.2f\n", empty_ns);
	return 0;
}
