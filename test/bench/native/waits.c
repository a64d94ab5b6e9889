/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What calls cost that may wait, and here don't: waits N. Prints a line for each with the ns of the
 * thread's processor time that a call took.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int zero, null;
static char byte;

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void call_mutex(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

/* Its time is over already. */
static void call_condition(void)
{
	const struct timespec past = {0};

	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&condition, &mutex, &past);
	pthread_mutex_unlock(&mutex);
}

static void call_semaphore(void)
{
	sem_post(&semaphore);
	sem_wait(&semaphore);
}

static void call_read(void)
{
	if (read(zero, &byte, 1) != 1)
		abort();
}

static void call_write(void)
{
	if (write(null, &byte, 1) != 1)
		abort();
}

static void call_poll(void)
{
	struct pollfd ready = {.fd = zero, .events = POLLIN};

	poll(&ready, 1, 0);
}

static void measure(const char *name, void (*call)(void), long n)
{
	double least_ns = 0;

	for (int round = 0; round < 5; round++) {
		double begin_ns = cpu_ns(), ns;

		for (long i = 0; i < n; i++)
			call();
		ns = (cpu_ns() - begin_ns) / (double)n;
		least_ns = !round || ns < least_ns ? ns : least_ns;
	}
	printf("%s %.2f\n", name, least_ns);
}

int main(int argc, char **argv)
{
	long n = argc == 2 ? atol(argv[1]) : 0;

	zero = open("/dev/zero", O_RDONLY);
	null = open("/dev/null", O_WRONLY);
	if (n <= 0 || zero < 0 || null < 0 || sem_init(&semaphore, 0, 0))
		return 2;
	measure("mutex lock and unlock", call_mutex, n);
	/* The kernel takes long for it. */
	measure("cond_timedwait that is over", call_condition, n / 100 + 1);
	measure("sem_post and sem_wait", call_semaphore, n);
	measure("read of a byte", call_read, n);
	measure("write of a byte", call_write, n);
	measure("poll that does not wait", call_poll, n);
	return 0;
}
