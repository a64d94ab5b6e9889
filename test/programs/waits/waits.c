/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Waits in every way that is recorded, once each and for about WAIT_MS, and writes what it waited
 * for: a line "KIND OBJECT NS" each, by its own clock around the call. Then it does short calls,
 * and prints "short KIND N". A second thread ends each wait that no time ends. With the argument
 * "bound" it only prints which of its references lead elsewhere than a look-up by name; with "old"
 * it waits for a condition variable as programs of 2002 have it, and for one of today's.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(claim)                   \
	do {                            \
		if (!(claim)) {         \
			perror(#claim); \
			exit(1);        \
		}                       \
	} while (0)

#define WAIT_MS 5
#define N_SHORT 300

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Busy, so that it is no wait of the helper. */
static void spin_ms(uint64_t ms)
{
	uint64_t end = now_ns() + ms * 1000000;

	while (now_ns() < end)
		;
}

static struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec at;

	clock_gettime(clock, &at);
	at.tv_nsec += ms * 1000000;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

#define TIMED(kind, object, call)                                                \
	do {                                                                     \
		uint64_t begin_ = now_ns();                                      \
                                                                                 \
		call;                                                            \
		printf("%s %" PRIu64 " %" PRIu64 "\n", kind, (uint64_t)(object), \
		       now_ns() - begin_);                                       \
	} while (0)

/* ---- the helper: does what it is given after WAIT_MS ----------------------------------------- */

static struct {
	void (*end)(void);
	_Atomic int is_ready;
} helper;

static void *help(void *unused)
{
	while (!helper.is_ready)
		;
	spin_ms(WAIT_MS);
	helper.end();
	return unused;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, of_cond = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int pipe_of[2], sockets[2], listener;
static bool is_done;

/* A wait that the helper's function ends. */
#define ENDED(kind, object, call, function)                          \
	do {                                                         \
		pthread_t thread_;                                   \
                                                                     \
		helper.is_ready = 0;                                 \
		helper.end = function;                               \
		EXPECT(!pthread_create(&thread_, NULL, help, NULL)); \
		TIMED(kind, object, helper.is_ready = 1; call);      \
		pthread_join(thread_, NULL);                         \
	} while (0)

static void *hold_mutex(void *lock_until)
{
	EXPECT(!pthread_mutex_lock(&mutex));
	*(_Atomic int *)lock_until = 1;
	while (!helper.is_ready)
		;
	spin_ms(WAIT_MS);
	EXPECT(!pthread_mutex_unlock(&mutex));
	return NULL;
}

static void *hold_rwlock(void *lock_until)
{
	EXPECT(!pthread_rwlock_wrlock(&rwlock));
	*(_Atomic int *)lock_until = 1;
	while (!helper.is_ready)
		;
	spin_ms(WAIT_MS);
	EXPECT(!pthread_rwlock_unlock(&rwlock));
	return NULL;
}

/* A wait for a lock that another thread holds. */
static void wait_held(const char *kind, void *object, void *(*hold)(void *), int (*lock)(void *),
		      int (*unlock)(void *))
{
	_Atomic int is_held = 0;
	pthread_t thread;

	helper.is_ready = 0;
	EXPECT(!pthread_create(&thread, NULL, hold, &is_held));
	while (!is_held)
		;
	TIMED(kind, (uintptr_t)object, helper.is_ready = 1; EXPECT(!lock(object)));
	EXPECT(!unlock(object));
	pthread_join(thread, NULL);
}

static int lock_mutex(void *lock)
{
	return pthread_mutex_lock(lock);
}
static int lock_mutex_timed(void *lock)
{
	struct timespec until = in_ms(CLOCK_REALTIME, 60000);

	return pthread_mutex_timedlock(lock, &until);
}
static int unlock_mutex(void *lock)
{
	return pthread_mutex_unlock(lock);
}
static int lock_read(void *lock)
{
	return pthread_rwlock_rdlock(lock);
}
static int lock_write(void *lock)
{
	return pthread_rwlock_wrlock(lock);
}
static int unlock_rwlock(void *lock)
{
	return pthread_rwlock_unlock(lock);
}

static void end_cond(void)
{
	pthread_mutex_lock(&of_cond);
	is_done = true;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&of_cond);
}

static void wait_cond(void)
{
	pthread_mutex_lock(&of_cond);
	while (!is_done)
		pthread_cond_wait(&cond, &of_cond);
	pthread_mutex_unlock(&of_cond);
}

static void end_semaphore(void)
{
	sem_post(&semaphore);
}
static void end_barrier(void)
{
	pthread_barrier_wait(&barrier);
}
static void end_pipe(void)
{
	EXPECT(write(pipe_of[1], "x", 1) == 1);
}
static void end_socket(void)
{
	EXPECT(send(sockets[1], "x", 1, 0) == 1);
}
static void end_nothing(void)
{
}
static void end_signal(void)
{
	kill(getpid(), SIGUSR1);
}

static void drain_pipe(void)
{
	char all[70000];

	EXPECT(read(pipe_of[0], all, sizeof(all)) > 0);
}

static void drain_socket(void)
{
	static char all[1 << 20];

	EXPECT(recv(sockets[1], all, sizeof(all), 0) > 0);
}

/* What the waits have left there, which may be nothing. */
static void empty_socket(void)
{
	static char all[1 << 20];

	while (recv(sockets[1], all, sizeof(all), MSG_DONTWAIT) > 0)
		;
}

static void end_accept(void)
{
	struct sockaddr_in at;
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	EXPECT(!getsockname(listener, (void *)&at, &n));
	EXPECT(!connect(fd, (void *)&at, n));
	close(fd);
}

static void locks_and_conditions(void)
{
	struct timespec until;
	pthread_t thread;
	sigset_t set;
	int number;

	wait_held("mutex", &mutex, hold_mutex, lock_mutex, unlock_mutex);
	wait_held("mutex", &mutex, hold_mutex, lock_mutex_timed, unlock_mutex);
	wait_held("rwlock", &rwlock, hold_rwlock, lock_read, unlock_rwlock);
	wait_held("rwlock", &rwlock, hold_rwlock, lock_write, unlock_rwlock);
	ENDED("condition", (uintptr_t)&cond, wait_cond(), end_cond);
	pthread_mutex_lock(&of_cond);
	until = in_ms(CLOCK_REALTIME, WAIT_MS);
	TIMED("condition", (uintptr_t)&cond,
	      EXPECT(pthread_cond_timedwait(&cond, &of_cond, &until) == ETIMEDOUT));
	pthread_mutex_unlock(&of_cond);
	ENDED("semaphore", (uintptr_t)&semaphore, EXPECT(!sem_wait(&semaphore)), end_semaphore);
	until = in_ms(CLOCK_REALTIME, WAIT_MS);
	TIMED("semaphore", (uintptr_t)&semaphore,
	      EXPECT(sem_timedwait(&semaphore, &until) == -1 && errno == ETIMEDOUT));
	EXPECT(!pthread_barrier_init(&barrier, NULL, 2));
	ENDED("barrier", (uintptr_t)&barrier, pthread_barrier_wait(&barrier), end_barrier);
	helper.is_ready = 0;
	helper.end = end_nothing;
	EXPECT(!pthread_create(&thread, NULL, help, NULL));
	TIMED("join", (uintptr_t)thread, helper.is_ready = 1; EXPECT(!pthread_join(thread, NULL)));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	ENDED("signal", 0, EXPECT(!sigwait(&set, &number) && number == SIGUSR1), end_signal);
}

static void descriptors(void)
{
	struct pollfd one = {.events = POLLIN};
	struct epoll_event event = {.events = EPOLLIN};
	struct timeval time = {.tv_usec = WAIT_MS * 1000};
	static char much[1 << 20];
	int epoll = epoll_create1(0);
	char byte;

	EXPECT(!pipe(pipe_of) && !socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) && epoll >= 0);
	one.fd = pipe_of[0];
	EXPECT(!epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_of[0], &event));
	TIMED("poll", 0, EXPECT(poll(&one, 1, WAIT_MS) == 0));
	TIMED("poll", 0, EXPECT(select(0, NULL, NULL, NULL, &time) == 0));
	TIMED("poll", epoll, EXPECT(epoll_wait(epoll, &event, 1, WAIT_MS) == 0));
	ENDED("read", pipe_of[0], EXPECT(read(pipe_of[0], &byte, 1) == 1), end_pipe);
	EXPECT(fcntl(pipe_of[1], F_SETPIPE_SZ, 65536) >= 65536);
	EXPECT(write(pipe_of[1], much, 65536) == 65536);
	ENDED("write", pipe_of[1], EXPECT(write(pipe_of[1], much, 4096) == 4096), drain_pipe);
	ENDED("receive", sockets[0], EXPECT(recv(sockets[0], &byte, 1, 0) == 1), end_socket);
	ENDED("receive", sockets[0], EXPECT(recvfrom(sockets[0], &byte, 1, 0, NULL, NULL) == 1),
	      end_socket);
	while (send(sockets[0], much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	ENDED("send", sockets[0], EXPECT(send(sockets[0], "y", 1, 0) == 1), drain_socket);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	EXPECT(!listen(listener, 4));
	ENDED("accept", listener, close(accept(listener, NULL, NULL)), end_accept);
}

static void times_and_children(void)
{
	struct timespec time = {.tv_nsec = WAIT_MS * 1000000};
	pid_t child = fork();
	int status;

	if (!child) {
		spin_ms(WAIT_MS);
		_exit(3);
	}
	TIMED("child", child, EXPECT(waitpid(child, &status, 0) == child));
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	TIMED("sleep", 0, EXPECT(!nanosleep(&time, NULL)));
	TIMED("sleep", 0, EXPECT(!clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL)));
	TIMED("sleep", 0, EXPECT(!usleep(WAIT_MS * 1000)));
	TIMED("sleep", 0, EXPECT(!thrd_sleep(&time, NULL)));
}

/* Calls that find at once what they wait for; a free mutex is no wait at all. */
static void short_calls(void)
{
	char byte = 'z';

	empty_socket();
	for (int i = 0; i < N_SHORT; i++) {
		EXPECT(send(sockets[0], &byte, 1, 0) == 1);
		EXPECT(recv(sockets[1], &byte, 1, 0) == 1);
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		sem_post(&semaphore);
		EXPECT(!sem_wait(&semaphore));
	}
	printf("short send %d\nshort receive %d\nshort semaphore %d\n", N_SHORT, N_SHORT, N_SHORT);
}

static void *wait_for_ever(void *at)
{
	*(_Atomic int *)at = 1;
	for (;;)
		pause();
	return NULL;
}

static void print_bound(void)
{
#define PRINT(name) printf("%s %d\n", #name, dlsym(RTLD_DEFAULT, #name) != (void *)&name)
	PRINT(read);
	PRINT(nanosleep);
	PRINT(pthread_mutex_lock);
	PRINT(pthread_mutex_unlock);
	PRINT(sem_post);
	PRINT(getpid);
#undef PRINT
}

#if defined(__x86_64__)
int old_timedwait(void *cond, pthread_mutex_t *lock, const struct timespec *until);
__asm__(".symver old_timedwait,pthread_cond_timedwait@GLIBC_2.2.5");

/* It was a pointer: the functions of today's write past it. */
static struct {
	void *cond, *behind[8];
} old;

static void wait_for_old(void)
{
	struct timespec until = {0};

	pthread_mutex_lock(&of_cond);
	EXPECT(old_timedwait(&old.cond, &of_cond, &until) == ETIMEDOUT && old.cond);
	for (int i = 0; i < 8; i++)
		EXPECT(!old.behind[i]);
	EXPECT(pthread_cond_timedwait(&cond, &of_cond, &until) == ETIMEDOUT);
	pthread_mutex_unlock(&of_cond);
}
#else
static void wait_for_old(void)
{
	printf("this processor has none\n");
}
#endif

int main(int argc, char **argv)
{
	_Atomic int has_begun = 0;
	pthread_t thread;
	sigset_t set;

	if (argc > 1 && !strcmp(argv[1], "bound")) {
		print_bound();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "old")) {
		wait_for_old();
		return 0;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sem_init(&semaphore, 0, 0);
	EXPECT(!pthread_create(&thread, NULL, wait_for_ever, &has_begun));
	while (!has_begun)
		;
	locks_and_conditions();
	descriptors();
	times_and_children();
	short_calls();
	fflush(stdout);
	return 0;
}
