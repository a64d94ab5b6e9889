/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * cpu_blocking SECONDS: for each blocking call, alternates short bursts of processor time with a
 * call that waits shortly, for so many seconds of processor time, so that ticks meet the begins of
 * calls. Prints each call that failed with anything but its time-out, and how often.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define WAIT_NS 20000

static volatile uint64_t sink;
static int sockets[2], epoll, alarm_fd, semaphores;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static struct timespec wait_time(void)
{
	return (struct timespec){.tv_nsec = WAIT_NS};
}

static struct timespec deadline(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	at.tv_nsec += WAIT_NS;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

/* Each returns 0, or the error. */

static int of_result(long result, int expected)
{
	return result >= 0 || errno == expected ? 0 : errno;
}

static int call_nanosleep(void)
{
	struct timespec time = wait_time();

	return of_result(nanosleep(&time, NULL), 0);
}

static int call_clock_nanosleep(void)
{
	struct timespec time = wait_time();

	return clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static int call_clock_nanosleep_until(void)
{
	struct timespec at = deadline(CLOCK_MONOTONIC);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static int call_usleep(void)
{
	return of_result(usleep(WAIT_NS / 1000), 0);
}

static int call_ppoll(void)
{
	struct pollfd fd = {.fd = sockets[0], .events = POLLIN};
	struct timespec time = wait_time();

	return of_result(ppoll(&fd, 1, &time, NULL), 0);
}

static int call_poll(void)
{
	struct pollfd fd = {.fd = sockets[0], .events = POLLIN};

	return of_result(poll(&fd, 1, 1), 0);
}

static int call_select(void)
{
	struct timeval time = {.tv_usec = WAIT_NS / 1000};

	return of_result(select(0, NULL, NULL, NULL, &time), 0);
}

static int call_pselect(void)
{
	struct timespec time = wait_time();

	return of_result(pselect(0, NULL, NULL, NULL, &time, NULL), 0);
}

static int call_epoll_wait(void)
{
	struct epoll_event event;

	return of_result(epoll_wait(epoll, &event, 1, 1), 0);
}

static int call_sem_timedwait(void)
{
	struct timespec at = deadline(CLOCK_REALTIME);

	return of_result(sem_timedwait(&semaphore, &at), ETIMEDOUT);
}

static int call_cond_timedwait(void)
{
	struct timespec at = deadline(CLOCK_REALTIME);
	int error;

	pthread_mutex_lock(&mutex);
	error = pthread_cond_timedwait(&condition, &mutex, &at);
	pthread_mutex_unlock(&mutex);
	return error == ETIMEDOUT ? 0 : error;
}

static int call_recv(void)
{
	char byte;

	return of_result(recv(sockets[0], &byte, 1, 0), EAGAIN);
}

static int call_accept(void)
{
	static int listener = -1;
	struct timeval time = {.tv_usec = WAIT_NS / 1000};

	if (listener < 0) {
		listener = socket(AF_UNIX, SOCK_STREAM, 0);
		if (bind(listener, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)) ||
		    listen(listener, 1) ||
		    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)))
			return errno;
	}
	return of_result(accept(listener, NULL, NULL), EAGAIN);
}

static int call_semtimedop(void)
{
	struct sembuf operation = {.sem_op = -1};
	struct timespec time = wait_time();

	return of_result(semtimedop(semaphores, &operation, 1, &time), EAGAIN);
}

static int call_sigtimedwait(void)
{
	struct timespec time = wait_time();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return of_result(sigtimedwait(&set, NULL, &time), EAGAIN);
}

static int call_read(void)
{
	struct itimerspec once = {.it_value = wait_time()};
	uint64_t n;

	timerfd_settime(alarm_fd, 0, &once, NULL);
	return of_result(read(alarm_fd, &n, sizeof(n)), 0);
}

static const struct {
	const char *name;
	int (*call)(void);
} calls[] = {
#define CALL(name)                 \
	{                          \
#name, call_##name \
	}
	CALL(nanosleep),     CALL(clock_nanosleep), CALL(clock_nanosleep_until),
	CALL(usleep),	     CALL(ppoll),	    CALL(poll),
	CALL(select),	     CALL(pselect),	    CALL(epoll_wait),
	CALL(sem_timedwait), CALL(cond_timedwait),  CALL(recv),
	CALL(accept),	     CALL(semtimedop),	    CALL(sigtimedwait),
	CALL(read),
};

static double processor_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void try_call(const char *name, int (*call)(void), double seconds)
{
	int n_failed = 0, last = 0, n = 0;
	double until = processor_s() + seconds;

	for (; processor_s() < until || n < 100; n++) {
		int error;

		/* Of changing length: the calls begin at any time of a tick. */
		for (int i = 0; i < 1000 + n % 977 * 50; i++)
			sink += (uint64_t)i;
		error = call();
		n_failed += error != 0;
		last = error ? error : last;
	}
	printf("%s: %d failed, %s\n", name, n_failed, strerror(last));
}

int main(int argc, char **argv)
{
	struct timeval time = {.tv_usec = WAIT_NS / 1000};
	double seconds = argc > 1 ? atof(argv[1]) : 0.1;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	epoll = epoll_create1(0);
	alarm_fd = timerfd_create(CLOCK_MONOTONIC, 0);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	sem_init(&semaphore, 0, 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		try_call(calls[i].name, calls[i].call, seconds);
	semctl(semaphores, 0, IPC_RMID);
	return 0;
}
