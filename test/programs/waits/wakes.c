/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Threads wait for what another thread does WAIT_MS after they are blocked. For each wait a line
 *
 *	NAME KIND OBJECT TID BEGIN END WAKER BEFORE AFTER
 *
 * the waiting thread and its own clock around the wait; the thread that ended it (0: none did, or
 * it isn't known) and its own clock around that call. With "fork" a child does it, while the parent waits. With "race"
 * two threads arrive at once at a barrier where the main one waits, N_ROUNDS times: a line "TID" for
 * each, of the thread that the C library says was the last, 0 where that is the main one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
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
#define N_JUMPS 2048
#define N_WAITERS 3
#define N_ROUNDS 200
#define RACE_NS 200000

struct act {
	uint64_t begin_ns, end_ns;
	int tid;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, of_cond = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t c11_mutex;
static cnd_t c11_cond;
static sem_t semaphore, other_semaphore, ready;
static _Atomic int blocking; /* the thread that is about to wait, or waits */
static volatile int is_done;
static struct act waits[N_WAITERS], wake; /* what was done last */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A wait as well, with which the thread is known. */
static void sleep_ms(long ms)
{
	const struct timespec time = {.tv_nsec = ms * 1000000};

	nanosleep(&time, NULL);
}

#define TIMED(act, call)                    \
	do {                                \
		(act)->tid = gettid();      \
		(act)->begin_ns = now_ns(); \
		call;                       \
		(act)->end_ns = now_ns();   \
	} while (0)

#define WAITING(act, call)                  \
	do {                                \
		(act)->tid = gettid();      \
		(act)->begin_ns = now_ns(); \
		blocking = gettid();        \
		call;                       \
		(act)->end_ns = now_ns();   \
		blocking = 0;               \
	} while (0)

static bool is_blocked(int tid)
{
	char path[64], text[256] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	EXPECT(file && fgets(text, sizeof(text), file));
	fclose(file);
	state = strrchr(text, ')');
	return state && state[2] == 'S';
}

static void await_blocked(void)
{
	while (!blocking || !is_blocked(blocking))
		sched_yield();
}

static void let_wait(void)
{
	await_blocked();
	sleep_ms(WAIT_MS);
}

static void print(const char *name, const char *kind, const void *object, const struct act *wait,
		  bool is_woken)
{
	printf("%s %s %" PRIu64 " %d %" PRIu64 " %" PRIu64, name, kind, (uint64_t)(uintptr_t)object,
	       wait->tid, wait->begin_ns, wait->end_ns);
	printf(" %d %" PRIu64 " %" PRIu64 "\n", is_woken ? wake.tid : 0, wake.begin_ns,
	       wake.end_ns);
}

static pthread_t start(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, run, argument));
	return thread;
}

/* ---- what another thread does ---------------------------------------------------------------- */

static void *post(void *at)
{
	let_wait();
	TIMED(&wake, sem_post(at));
	return NULL;
}

static void *signal_condition(void *is_for_all)
{
	let_wait();
	pthread_mutex_lock(&of_cond);
	is_done = 1;
	TIMED(&wake, if (is_for_all) pthread_cond_broadcast(&cond);
	      else pthread_cond_signal(&cond));
	pthread_mutex_unlock(&of_cond);
	return NULL;
}

static void *hold_mutex(void *unused)
{
	pthread_mutex_lock(&mutex);
	sem_post(&ready);
	let_wait();
	TIMED(&wake, pthread_mutex_unlock(&mutex));
	return unused;
}

static void *hold_for_writing(void *unused)
{
	pthread_rwlock_wrlock(&rwlock);
	sem_post(&ready);
	let_wait();
	TIMED(&wake, pthread_rwlock_unlock(&rwlock));
	return unused;
}

static void *hold_for_reading(void *unused)
{
	pthread_rwlock_rdlock(&rwlock);
	sem_post(&ready);
	let_wait();
	TIMED(&wake, pthread_rwlock_unlock(&rwlock));
	return unused;
}

/* A wait for a condition releases the mutex. */
static void *release_mutex(void *unused)
{
	struct timespec until;

	pthread_mutex_lock(&mutex);
	sem_post(&ready);
	let_wait();
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	TIMED(&wake, pthread_cond_timedwait(&cond, &mutex, &until));
	pthread_mutex_unlock(&mutex);
	return unused;
}

static void *signal_c11(void *unused)
{
	let_wait();
	mtx_lock(&c11_mutex);
	is_done = 1;
	TIMED(&wake, cnd_signal(&c11_cond));
	mtx_unlock(&c11_mutex);
	return unused;
}

static void post_in_handler(int number)
{
	(void)number;
	TIMED(&wake, sem_post(&semaphore));
}

static void *interrupt_itself(void *unused)
{
	let_wait();
	pthread_kill(pthread_self(), SIGUSR1);
	return unused;
}

/* ---- waits ----------------------------------------------------------------------------------- */

static void *wait_for_condition(void *at)
{
	pthread_mutex_lock(&of_cond);
	blocking = gettid();
	sem_post(&ready);
	WAITING((struct act *)at, while (!is_done) pthread_cond_wait(&cond, &of_cond));
	pthread_mutex_unlock(&of_cond);
	return NULL;
}

static void semaphores(void)
{
	struct timespec until;
	pthread_t thread = start(post, &semaphore);

	WAITING(&waits[0], EXPECT(!sem_wait(&semaphore)));
	pthread_join(thread, NULL);
	print("post", "semaphore", &semaphore, &waits[0], true);
	thread = start(interrupt_itself, NULL);
	WAITING(&waits[0], EXPECT(!sem_wait(&semaphore)));
	pthread_join(thread, NULL);
	print("handler", "semaphore", &semaphore, &waits[0], true);
	/* Meanwhile a thread posts another one. */
	thread = start(post, &other_semaphore);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	WAITING(&waits[0], EXPECT(sem_timedwait(&semaphore, &until) == -1 && errno == ETIMEDOUT));
	pthread_join(thread, NULL);
	print("time", "semaphore", &semaphore, &waits[0], false);
}

static sigjmp_buf out;
static _Atomic int n_jumps;

static void jump(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

static void *interrupt_waits(void *thread)
{
	for (int i = 0; i < N_JUMPS; i++) {
		await_blocked();
		pthread_kill(*(pthread_t *)thread, SIGUSR2);
		while (n_jumps == i)
			sched_yield();
	}
	return NULL;
}

/* Waits that are left by jumps, for as many semaphores, do not keep others from being recorded. */
static void jumps(void)
{
	static sem_t left[N_JUMPS];
	pthread_t self = pthread_self(), thread = start(interrupt_waits, &self);

	for (volatile int i = 0; i < N_JUMPS; i++) {
		sem_init(&left[i], 0, 0);
		if (!sigsetjmp(out, 1)) {
			blocking = gettid();
			sem_wait(&left[i]);
		}
		blocking = 0;
		n_jumps++;
		poll(NULL, 0, 0);
	}
	pthread_join(thread, NULL);
	thread = start(post, &semaphore);
	WAITING(&waits[0], EXPECT(!sem_wait(&semaphore)));
	pthread_join(thread, NULL);
	print("jumps", "semaphore", &semaphore, &waits[0], true);
}

static void conditions(void)
{
	pthread_t thread, waiters[N_WAITERS];

	thread = start(signal_condition, NULL);
	wait_for_condition(&waits[0]);
	pthread_join(thread, NULL);
	sem_wait(&ready);
	print("signal", "condition", &cond, &waits[0], true);
	is_done = 0;
	for (int i = 0; i < N_WAITERS; i++) {
		waiters[i] = start(wait_for_condition, &waits[i]);
		sem_wait(&ready);
	}
	signal_condition(&cond);
	for (int i = 0; i < N_WAITERS; i++) {
		pthread_join(waiters[i], NULL);
		print("broadcast", "condition", &cond, &waits[i], true);
	}
	is_done = 0;
	mtx_init(&c11_mutex, mtx_plain);
	cnd_init(&c11_cond);
	thread = start(signal_c11, NULL);
	mtx_lock(&c11_mutex);
	WAITING(&waits[0], while (!is_done) cnd_wait(&c11_cond, &c11_mutex));
	mtx_unlock(&c11_mutex);
	pthread_join(thread, NULL);
	print("c11", "condition", &c11_cond, &waits[0], true);
}

static void mutexes(void)
{
	void *(*const ways[])(void *) = {hold_mutex, release_mutex};

	for (int i = 0; i < 2; i++) {
		pthread_t thread = start(ways[i], NULL);

		sem_wait(&ready);
		WAITING(&waits[0], pthread_mutex_lock(&mutex));
		pthread_mutex_unlock(&mutex);
		if (i)
			pthread_cond_signal(&cond);
		pthread_join(thread, NULL);
		print(i ? "released" : "unlock", "mutex", &mutex, &waits[0], true);
	}
}

static void rwlocks(void)
{
	pthread_t holders[2] = {start(hold_for_writing, NULL)};

	sem_wait(&ready);
	WAITING(&waits[0], pthread_rwlock_rdlock(&rwlock));
	pthread_rwlock_unlock(&rwlock);
	pthread_join(holders[0], NULL);
	print("read", "rwlock", &rwlock, &waits[0], true);
	/* Of one reader, then of two: any of them may be the last. */
	for (int n = 1; n <= 2; n++) {
		for (int i = 0; i < n; i++) {
			holders[i] = start(hold_for_reading, NULL);
			sem_wait(&ready);
		}
		WAITING(&waits[0], pthread_rwlock_wrlock(&rwlock));
		pthread_rwlock_unlock(&rwlock);
		for (int i = 0; i < n; i++)
			pthread_join(holders[i], NULL);
		print(n > 1 ? "readers" : "reader", "rwlock", &rwlock, &waits[0], n == 1);
	}
}

/* ---- barriers -------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

static void *arrive_last(void *unused)
{
	let_wait();
	TIMED(&wake, pthread_barrier_wait(&barrier));
	return unused;
}

static void *arrive(void *at)
{
	WAITING((struct act *)at, pthread_barrier_wait(&barrier));
	return NULL;
}

/* One thread waits, then two do. */
static void barriers(void)
{
	pthread_t threads[2];

	for (unsigned n = 1; n <= 2; n++) {
		pthread_barrier_init(&barrier, NULL, n + 1);
		for (unsigned i = 1; i < n; i++) {
			threads[i] = start(arrive, &waits[i]);
			await_blocked();
			blocking = 0;
		}
		threads[0] = start(arrive_last, NULL);
		arrive(&waits[0]);
		for (unsigned i = 0; i < n; i++) {
			pthread_join(threads[i], NULL);
		}
		for (unsigned i = 0; i < n; i++)
			print(n > 1 ? "three" : "two", "barrier", &barrier, &waits[i], true);
		pthread_barrier_destroy(&barrier);
	}
}

static _Atomic int entered, round_of_race, last_of_race;

/* The first of both lets the main thread wait for a while, and then the other one go, too. */
static void *race(void *is_first)
{
	for (int i = 1; i <= N_ROUNDS; i++) {
		if (is_first) {
			while (entered != i)
				sched_yield();
			await_blocked();
			for (uint64_t until = now_ns() + RACE_NS; now_ns() < until;)
				;
			round_of_race = i;
		}
		while (round_of_race != i)
			;
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			last_of_race = gettid();
	}
	return NULL;
}

static void races(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&barrier, NULL, 3);
	for (int i = 0; i < 2; i++)
		threads[i] = start(race, i ? &barrier : NULL);
	for (int i = 1; i <= N_ROUNDS; i++) {
		last_of_race = -1;
		blocking = gettid();
		entered = i;
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			last_of_race = 0;
		blocking = 0;
		while (last_of_race < 0)
			sched_yield();
		printf("%d\n", last_of_race);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* ---- pipes and eventfds ---------------------------------------------------------------------- */

static int pipe_ends[2], event, other_event;

static void *write_byte(void *unused)
{
	let_wait();
	TIMED(&wake, EXPECT(write(pipe_ends[1], "x", 1) == 1));
	return unused;
}

static void *write_event(void *of)
{
	const uint64_t one = 1;

	let_wait();
	TIMED(&wake, EXPECT(write(*(int *)of, &one, sizeof(one)) == sizeof(one)));
	return NULL;
}

static void *call_event(void *unused)
{
	let_wait();
	TIMED(&wake, EXPECT(!eventfd_write(event, 1)));
	return unused;
}

/* Nothing is written with the first one: it ends no wait, but may have. */
static void *write_nothing(void *unused)
{
	const uint64_t none = 0;

	let_wait();
	EXPECT(write(event, &none, sizeof(none)) == sizeof(none));
	return unused;
}

static void *write_after_another(void *unused)
{
	pthread_t first = start(write_nothing, NULL);

	pthread_join(first, NULL);
	return write_event(unused);
}

static void *close_pipe(void *unused)
{
	let_wait();
	TIMED(&wake, close(pipe_ends[1]));
	return unused;
}

static void read_while(const char *name, int fd, void *(*run)(void *), void *argument, size_t n,
		       bool is_woken)
{
	pthread_t thread = start(run, argument);
	uint64_t room;

	WAITING(&waits[0], EXPECT(read(fd, &room, sizeof(room)) == (ssize_t)n));
	pthread_join(thread, NULL);
	print(name, "read", (void *)(uintptr_t)fd, &waits[0], is_woken);
}

static void poll_while(const char *name, void *(*run)(void *), void *argument, int ms, int n,
		       bool is_woken)
{
	struct pollfd fds = {.fd = pipe_ends[0], .events = POLLIN};
	pthread_t thread = start(run, argument);

	WAITING(&waits[0], EXPECT(poll(&fds, 1, ms) == n));
	pthread_join(thread, NULL);
	print(name, "poll", NULL, &waits[0], is_woken);
}

static void files(void)
{
	eventfd_t value;
	pthread_t thread;
	char byte;

	EXPECT(!pipe(pipe_ends));
	event = eventfd(0, 0);
	other_event = eventfd(0, 0);
	EXPECT(event >= 0 && other_event >= 0);
	/* Who ends the first wait isn't recorded: only after it the thread is expected to wait. */
	read_while("first", pipe_ends[0], write_byte, NULL, 1, false);
	read_while("pipe", pipe_ends[0], write_byte, NULL, 1, true);
	poll_while("once", write_event, &other_event, 4 * WAIT_MS, 0, false);
	poll_while("polled", write_byte, NULL, -1, 1, true);
	EXPECT(read(pipe_ends[0], &byte, 1) == 1);
	/* Another thread writes into another file meanwhile. */
	poll_while("elsewhere", write_event, &other_event, 4 * WAIT_MS, 0, false);
	read_while("other", event, write_event, &event, sizeof(value), false);
	read_while("event", event, write_event, &event, sizeof(value), true);
	thread = start(call_event, NULL);
	WAITING(&waits[0], EXPECT(!eventfd_read(event, &value)));
	pthread_join(thread, NULL);
	print("called", "read", (void *)(uintptr_t)event, &waits[0], true);
	read_while("two", event, write_after_another, &event, sizeof(value), false);
	/* The end of the file is nothing that was written. */
	read_while("again", pipe_ends[0], write_byte, NULL, 1, false);
	read_while("closed", pipe_ends[0], close_pipe, NULL, 0, false);
}

int main(int argc, char **argv)
{
	const struct sigaction action = {.sa_handler = post_in_handler, .sa_flags = SA_RESTART};
	int status;

	sem_init(&semaphore, 0, 0);
	sem_init(&other_semaphore, 0, 0);
	sem_init(&ready, 0, 0);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &(struct sigaction){.sa_handler = jump}, NULL);
	if (argc > 1 && !strcmp(argv[1], "fork")) {
		pid_t child = fork();

		EXPECT(child >= 0);
		if (child) {
			EXPECT(waitpid(child, &status, 0) == child);
			return WEXITSTATUS(status);
		}
	}
	if (argc > 1 && !strcmp(argv[1], "race")) {
		races();
		return 0;
	}
	semaphores();
	conditions();
	mutexes();
	rwlocks();
	barriers();
	files();
	jumps();
	fflush(stdout);
	return 0;
}
