/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How calls that wait behave, a line for each: results, errno, signals, cancellations, jumps,
 * forks. The same lines are printed with the agent and without. With the argument "calls" it makes
 * many calls that do not wait, between two calls of access("/activity").
 */
#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static int pipe_of[2], sockets[2], full[2], listener, epoll;
static std::atomic<int> n_handled;

static void handle(int)
{
	n_handled++;
}

/* The result, and errno, which keeps its value where the call succeeds. */
static void print_result(const char *name, std::function<long()> call)
{
	errno = 77;
	long result = call();
	printf("%s %ld %d\n", name, result, errno);
}

static char state_of(pid_t tid)
{
	char path[64], text[512] = "", *at;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	FILE *file = fopen(path, "r");
	if (!file)
		return 'X';
	size_t n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = 0;
	fclose(file);
	at = strrchr(text, ')');
	return at ? at[2] : '?';
}

static timespec far_away()
{
	timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += 600;
	return at;
}

/* ---- blocking calls, each without an end ----------------------------------------------------- */

struct blocking {
	const char *name;
	std::function<long()> call;
};

static const blocking calls[] = {
	{"read",
	 [] {
		 char c;
		 return (long)read(pipe_of[0], &c, 1);
	 }},
	{"write",
	 [] {
		 static char much[1 << 20];
		 return (long)write(full[1], much, sizeof(much));
	 }},
	{"recv",
	 [] {
		 char c;
		 return (long)recv(sockets[0], &c, 1, 0);
	 }},
	{"recvmsg",
	 [] {
		 msghdr m = {};
		 return (long)recvmsg(sockets[0], &m, 0);
	 }},
	{"accept", [] { return (long)accept(listener, nullptr, nullptr); }},
	{"poll",
	 [] {
		 pollfd p = {pipe_of[0], POLLIN, 0};
		 return (long)poll(&p, 1, -1);
	 }},
	{"ppoll",
	 [] {
		 pollfd p = {pipe_of[0], POLLIN, 0};
		 return (long)ppoll(&p, 1, nullptr, nullptr);
	 }},
	{"select", [] { return (long)select(0, nullptr, nullptr, nullptr, nullptr); }},
	{"epoll_wait",
	 [] {
		 epoll_event e;
		 return (long)epoll_wait(epoll, &e, 1, -1);
	 }},
	{"nanosleep",
	 [] {
		 timespec t = {600, 0};
		 return (long)nanosleep(&t, nullptr);
	 }},
	{"clock_nanosleep",
	 [] {
		 timespec t = {600, 0};
		 return (long)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr);
	 }},
	{"sleep", [] { return (long)(sleep(600) > 0); }},
	{"usleep", [] { return (long)usleep(900000000); }},
	{"pause", [] { return (long)pause(); }},
	{"sem_wait", [] { return (long)sem_wait(&semaphore); }},
	{"sem_timedwait",
	 [] {
		 timespec t = far_away();
		 return (long)sem_timedwait(&semaphore, &t);
	 }},
};

struct held {
	std::atomic<int> *n_left;
	~held()
	{
		++*n_left;
	}
};

struct job {
	const blocking *what;
	std::atomic<pid_t> tid{0};
	std::atomic<int> n_left{0};
	long result = 0;
	int error = 0;
	std::atomic<bool> is_over{false};
};

static void *run_job(void *argument)
{
	job *of = static_cast<job *>(argument);
	held cleanup = {&of->n_left};

	of->tid = (pid_t)syscall(SYS_gettid);
	errno = 0;
	of->result = of->what->call();
	of->error = errno;
	of->is_over = true;
	return nullptr;
}

static void await_sleep(job *of)
{
	while (!of->tid || (state_of(of->tid) != 'S' && !of->is_over))
		sched_yield();
}

/* The destructor of the thread's object runs while the wrapper is unwound. */
static void cancel(const blocking *what)
{
	job of;
	pthread_t thread;
	void *out = nullptr;

	of.what = what;
	pthread_create(&thread, nullptr, run_job, &of);
	await_sleep(&of);
	pthread_cancel(thread);
	pthread_join(thread, &out);
	printf("cancel %s %d, %d destroyed, %d over\n", what->name, out == PTHREAD_CANCELED,
	       of.n_left.load(), (int)of.is_over);
}

struct locked {
	locked()
	{
		pthread_mutex_lock(&mutex);
	}
	~locked()
	{
		pthread_mutex_unlock(&mutex);
	}
};

/* Not interrupted by signals. */
static const blocking only_cancelled[] = {
	{"pthread_cond_wait",
	 [] {
		 locked lock;
		 return (long)pthread_cond_wait(&cond, &mutex);
	 }},
	{"pthread_cond_timedwait",
	 [] {
		 locked lock;
		 timespec t = far_away();
		 return (long)pthread_cond_timedwait(&cond, &mutex, &t);
	 }},
};

static void interrupt(const blocking *what)
{
	job of;
	pthread_t thread;

	of.what = what;
	pthread_create(&thread, nullptr, run_job, &of);
	await_sleep(&of);
	while (!of.is_over) {
		pthread_kill(thread, SIGUSR1);
		for (int i = 0; i < 50 && !of.is_over; i++)
			sched_yield();
	}
	pthread_join(thread, nullptr);
	printf("interrupt %s %ld %d\n", what->name, of.result, of.error);
}

static void set_handler(void (*handler)(int), int flags)
{
	struct sigaction action = {};

	action.sa_handler = handler;
	action.sa_flags = flags;
	sigaction(SIGUSR1, &action, nullptr);
}

/* With SA_RESTART the read goes on until there are data. */
static void restart()
{
	static const blocking reading = {"read", calls[0].call};
	job of;
	pthread_t thread;

	set_handler(handle, SA_RESTART);
	of.what = &reading;
	pthread_create(&thread, nullptr, run_job, &of);
	n_handled = 0;
	await_sleep(&of);
	while (n_handled < 5) {
		int before = n_handled;

		pthread_kill(thread, SIGUSR1);
		while (n_handled == before)
			sched_yield();
		await_sleep(&of);
	}
	if (write(pipe_of[1], "x", 1) != 1)
		abort();
	pthread_join(thread, nullptr);
	printf("restart %ld %d after %d\n", of.result, of.error, n_handled.load());
}

/* ---- jumps ----------------------------------------------------------------------------------- */

static thread_local sigjmp_buf back;

static void jump(int)
{
	siglongjmp(back, 1);
}

static void *jump_out(void *argument)
{
	job *of = static_cast<job *>(argument);

	of->tid = (pid_t)syscall(SYS_gettid);
	if (!sigsetjmp(back, 1))
		of->result = of->what->call();
	else
		of->result = -100;
	timespec t = {0, 100000};
	of->error = nanosleep(&t, nullptr);
	of->is_over = true;
	return nullptr;
}

static void jump_from(const blocking *what)
{
	job of;
	pthread_t thread;

	set_handler(jump, 0);
	of.what = what;
	pthread_create(&thread, nullptr, jump_out, &of);
	await_sleep(&of);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, nullptr);
	printf("jump %s %ld %d\n", what->name, of.result, of.error);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static void *die_holding(void *lock)
{
	return pthread_mutex_lock((pthread_mutex_t *)lock), nullptr;
}

static void locks()
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t other;
	pthread_t thread;
	timespec past = {0, 0}, invalid = {0, 2000000000};
	int types[] = {PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};

	for (int type : types) {
		pthread_mutexattr_init(&attributes);
		pthread_mutexattr_settype(&attributes, type);
		pthread_mutex_init(&other, &attributes);
		print_result("lock", [&] { return pthread_mutex_lock(&other); });
		print_result("lock again", [&] { return pthread_mutex_lock(&other); });
		print_result("unlock", [&] { return pthread_mutex_unlock(&other); });
		print_result("unlock again", [&] { return pthread_mutex_unlock(&other); });
	}
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&other, &attributes);
	pthread_create(&thread, nullptr, die_holding, &other);
	pthread_join(thread, nullptr);
	print_result("owner died", [&] { return pthread_mutex_lock(&other); });
	print_result("unlock", [&] { return pthread_mutex_unlock(&other); });
	print_result("not recoverable", [&] { return pthread_mutex_lock(&other); });
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&other, &attributes);
	print_result("inherit", [&] { return pthread_mutex_lock(&other); });
	print_result("unlock", [&] { return pthread_mutex_unlock(&other); });
	pthread_mutex_lock(&mutex);
	print_result("late", [&] { return pthread_mutex_timedlock(&mutex, &past); });
	print_result("invalid", [&] { return pthread_mutex_timedlock(&mutex, &invalid); });
	print_result("cond late", [&] { return pthread_cond_timedwait(&cond, &mutex, &past); });
	print_result("cond invalid",
		     [&] { return pthread_cond_timedwait(&cond, &mutex, &invalid); });
	pthread_mutex_unlock(&mutex);
	print_result("free and late", [&] { return pthread_mutex_timedlock(&mutex, &past); });
	pthread_mutex_unlock(&mutex);
	print_result("read lock", [&] { return pthread_rwlock_rdlock(&rwlock); });
	print_result("read lock", [&] { return pthread_rwlock_rdlock(&rwlock); });
	print_result("write late", [&] { return pthread_rwlock_timedwrlock(&rwlock, &past); });
	print_result("unlock", [&] { return pthread_rwlock_unlock(&rwlock); });
	print_result("unlock", [&] { return pthread_rwlock_unlock(&rwlock); });
	print_result("write lock", [&] { return pthread_rwlock_wrlock(&rwlock); });
	print_result("write again", [&] { return pthread_rwlock_wrlock(&rwlock); });
	print_result("unlock", [&] { return pthread_rwlock_unlock(&rwlock); });
}

static void errors()
{
	sockaddr_in nobody = {};
	char c;

	nobody.sin_family = AF_INET;
	nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	nobody.sin_port = htons(1);
	print_result("read -1", [&] { return (long)read(-1, &c, 1); });
	print_result("read NULL", [&] { return (long)read(0, nullptr, 0) * 0; });
	print_result("write -1", [&] { return (long)write(-1, &c, 1); });
	print_result("recv -1", [&] { return (long)recv(-1, &c, 1, 0); });
	print_result("recv at once", [&] { return (long)recv(sockets[0], &c, 1, MSG_DONTWAIT); });
	print_result("send", [&] { return (long)send(sockets[0], "x", 1, 0); });
	print_result("recv", [&] { return (long)recv(sockets[1], &c, 1, 0); });
	print_result("connect", [&] {
		return (long)connect(socket(AF_INET, SOCK_STREAM, 0), (sockaddr *)&nobody,
				     sizeof(nobody));
	});
	print_result("waitpid", [&] { return (long)waitpid(-1, nullptr, 0); });
	print_result("poll 0", [&] { return (long)poll(nullptr, 0, 0); });
	timespec bad = {0, -1};
	print_result("nanosleep", [&] { return (long)nanosleep(&bad, nullptr); });
	print_result("clock_nanosleep",
		     [&] { return (long)clock_nanosleep(99, 0, &bad, nullptr); });
	print_result("join self", [&] { return (long)pthread_join(pthread_self(), nullptr); });
	print_result("fsync", [&] { return (long)fsync(pipe_of[0]); });
	print_result("epoll", [&] {
		epoll_event e;
		return (long)epoll_wait(-1, &e, 1, 0);
	});
}

/* ---- forks ----------------------------------------------------------------------------------- */

static void *fork_and_wait(void *unused)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		timespec t = {0, 1000000};
		_exit(nanosleep(&t, nullptr) ? 1 : 5);
	}
	waitpid(child, &status, 0);
	printf("fork %d\n", WEXITSTATUS(status));
	return unused;
}

/* While another thread waits. */
static void forks()
{
	job of;
	pthread_t thread, forker;

	of.what = &calls[0];
	pthread_create(&thread, nullptr, run_job, &of);
	await_sleep(&of);
	pthread_create(&forker, nullptr, fork_and_wait, nullptr);
	pthread_join(forker, nullptr);
	if (write(pipe_of[1], "x", 1) != 1)
		abort();
	pthread_join(thread, nullptr);
	printf("beside it %ld\n", of.result);
	fflush(stdout);
	printf("system %d\n", system("exit 4"));
}

static void state()
{
	int n = 0, n_handlers = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	for (int number = 1; number < 65; number++) {
		struct sigaction action;

		if (!sigaction(number, nullptr, &action))
			n_handlers += action.sa_handler != SIG_DFL;
	}
	printf("descriptors %d handlers %d\n", n, n_handlers);
}

static int make_calls()
{
	char c = 'x';

	access("/activity", F_OK);
	for (int i = 0; i < 100; i++) {
		pollfd p = {pipe_of[0], POLLIN, 0};

		if (write(pipe_of[1], &c, 1) != 1 || poll(&p, 1, -1) != 1 ||
		    read(pipe_of[0], &c, 1) != 1 || send(sockets[0], &c, 1, 0) != 1 ||
		    recv(sockets[1], &c, 1, 0) != 1)
			return 1;
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
		sem_post(&semaphore);
		sem_wait(&semaphore);
		usleep(0);
	}
	access("/activity", F_OK);
	return 0;
}

int main(int argc, char **argv)
{
	epoll_event event = {EPOLLIN, {}};

	sem_init(&semaphore, 0, 0);
	if (pipe(pipe_of) || pipe(full) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	if (argc > 1 && !strcmp(argv[1], "calls"))
		return make_calls();
	listener = socket(AF_INET, SOCK_STREAM, 0);
	epoll = epoll_create1(0);
	if (listen(listener, 4) || epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_of[0], &event))
		return 1;
	state();
	errors();
	locks();
	set_handler(handle, 0);
	for (const blocking &what : calls)
		if (strcmp(what.name, "write"))
			interrupt(&what);
	restart();
	for (const blocking &what : calls)
		cancel(&what);
	for (const blocking &what : only_cancelled)
		cancel(&what);
	print_result("free again", [] { return pthread_mutex_trylock(&mutex); });
	for (const char *name : {"read", "poll", "nanosleep", "pause"})
		for (const blocking &what : calls)
			if (!strcmp(what.name, name))
				jump_from(&what);
	forks();
	state();
	return 0;
}
