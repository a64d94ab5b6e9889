/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Forks and allocates, while a timer's signal handler does the same: it interrupts forks and
 * allocations, as in the C library's own tst-mallocfork2. One thread. Returns 0 when the handler
 * has run N times: forks N.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOONEST_US 20
#define DELAYS_US 600 /* tried one after another */
#define N_BLOCKS 64
#define LARGE (64u << 10)

static volatile sig_atomic_t n_handled, n_failed;

static void fork_once(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	if (child < 0) {
		n_failed = 1;
		return;
	}
	while (waitpid(child, NULL, 0) < 0)
		if (errno != EINTR) {
			n_failed = 1;
			return;
		}
}

static void handle(int number)
{
	int saved = errno;

	(void)number;
	fork_once();
	n_handled++;
	errno = saved;
}

/* Sizes of several kinds, so that locks of all kinds are taken. */
static void allocate(void)
{
	void *blocks[N_BLOCKS];

	for (size_t i = 0; i < N_BLOCKS; i++)
		blocks[i] = malloc(i % 8 ? 16 * i + 1 : LARGE * (i + 1));
	for (size_t i = 0; i < N_BLOCKS; i++)
		free(blocks[i]);
}

/*
 * One signal, some time into what follows. A second one might find the first one's fork not over,
 * and so for ever.
 */
static void arm(int round)
{
	struct itimerval timer = {.it_value.tv_usec = SOONEST_US + round * 7 % DELAYS_US};

	setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char **argv)
{
	int n_wanted = argc == 2 ? atoi(argv[1]) : 0;
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &action, NULL);
	for (int round = 0; n_handled < n_wanted && !n_failed; round++) {
		arm(round);
		fork_once();
		allocate();
	}
	signal(SIGALRM, SIG_IGN);
	return n_failed;
}
