// SPDX-License-Identifier: Apache-2.0 OR MIT
// As lsan_cases.cc: what LeakSanitizer's test cases show of threads, of other stacks, of forks and
// of signals.
#include <climits>
#include <csignal>
#include <cstdint>
#include <dirent.h>
#include <dlfcn.h>
#include <initializer_list>
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "test/programs/reachability/cases.h"

char places[8];
thread_local void *of_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// ---- threads ----

static bool leaks_argument, leaks_result;

static void *take_and_give(void *argument)
{
	if (!leaks_argument)
		free(argument);
	return malloc(234);
}

static void create_threads(bool is_detached)
{
	for (int i = 0; i < 10; i++) {
		pthread_t threads[10];

		for (pthread_t &thread : threads)
			thread = start(take_and_give, malloc(123));
		for (pthread_t thread : threads) {
			void *result = nullptr;

			if (is_detached) {
				pthread_detach(thread);
				continue;
			}
			pthread_join(thread, &result);
			if (!leaks_result)
				free(result);
		}
	}
}

static NOINLINE void create_thread_leak() { create_threads(false); }

static NOINLINE void create_thread_leak_arg()
{
	leaks_argument = true;
	create_threads(false);
}

static NOINLINE void create_thread_leak_retval()
{
	leaks_result = true;
	create_threads(false);
}

// The kernel ends a detached thread some time after its function has.
static void await_only_thread()
{
	for (int n = 0; n != 1;) {
		DIR *tasks = opendir("/proc/self/task");

		for (n = -2; readdir(tasks); n++)
			;
		closedir(tasks);
		sched_yield();
	}
}

static NOINLINE void create_thread_leak_detached()
{
	leaks_argument = true;
	create_threads(true);
	await_only_thread();
}

static void *want_lock(void *argument)
{
	pthread_mutex_lock(&lock);
	free(argument);
	return nullptr;
}

static NOINLINE void leak_check_before_thread_started()
{
	pthread_mutex_lock(&lock);
	pthread_detach(start(want_lock, malloc(1337)));
}

static pthread_key_t key;

static void *set_key_and_variable(void *)
{
	of_thread = malloc(1337);
	pthread_setspecific(key, &key);
	return nullptr;
}

static NOINLINE void cleanup_in_tsd_destructor()
{
	pthread_key_create(&key, [](void *) { clear_stack(); });
	pthread_join(start(set_key_and_variable), nullptr);
}

// In the last round of destructors, before the C library frees what it keeps of the thread.
static void end_slowly(void *rounds)
{
	if (rounds != static_cast<void *>(places + 1)) {
		pthread_setspecific(key, static_cast<char *>(rounds) - 1);
		return;
	}
	n_ready++;
	stay();
}

static void *fail_to_find(void *)
{
	dlsym(RTLD_DEFAULT, "no_symbol_has_this_name");
	pthread_setspecific(key, places + PTHREAD_DESTRUCTOR_ITERATIONS);
	return nullptr;
}

static NOINLINE void detached_thread_dlsym()
{
	pthread_key_create(&key, end_slowly);
	pthread_detach(start(fail_to_find));
	await(1);
}

static void *give_and_take(void *)
{
	for (int i = 0; i < 20000; i++) {
		void *made = malloc(10);

		asm volatile("" : : "r"(made) : "memory");
		free(made);
	}
	return nullptr;
}

static NOINLINE void high_allocator_contention()
{
	pthread_t threads[5];

	for (pthread_t &thread : threads)
		thread = start(give_and_take);
	for (pthread_t thread : threads)
		pthread_join(thread, nullptr);
}

static int allocate_in_callback(dl_phdr_info *, size_t, void *)
{
	void *made[1000];

	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < 1000; i++)
			made[i] = malloc(10 * i);
		n_ready = 1;
		for (void *one : made)
			free(one);
	}
	return 1;
}

// The exit comes while a thread allocates with the loader's lock.
static NOINLINE void libdl_deadlock()
{
	start([](void *) -> void * {
		dl_iterate_phdr(allocate_in_callback, nullptr);
		return nullptr;
	});
	await(1);
}

// ---- other stacks ----

static ucontext_t outer, inner;

static void lose_one()
{
	int *volatile lost = new int[666];

	(void)lost;
}

static void run_on(char *stack, size_t size)
{
	getcontext(&inner);
	inner.uc_stack.ss_sp = stack;
	inner.uc_stack.ss_size = size;
	inner.uc_link = &outer;
	makecontext(&inner, lose_one, 0);
	swapcontext(&outer, &inner);
	memset(stack, 0, size);
}

static NOINLINE void swapcontext_heap()
{
	const size_t size = 1 << 19;
	char *stack = new char[size];

	run_on(stack, size);
	delete[] stack;
	memset(&inner, 0, sizeof(inner));
	memset(&outer, 0, sizeof(outer));
}

static NOINLINE void swapcontext_stack()
{
	char stack[1 << 19] __attribute__((aligned(16)));

	run_on(stack, sizeof(stack));
	memset(&inner, 0, sizeof(inner));
	memset(&outer, 0, sizeof(outer));
}

static void spin()
{
	n_ready++;
	for (;;)
		sched_yield();
}

static void *leave_stack(void *)
{
	ucontext_t context;
	const size_t size = 1 << 14;

	getcontext(&context);
	context.uc_stack.ss_sp = malloc(size);
	context.uc_stack.ss_size = size;
	makecontext(&context, spin, 0);
	setcontext(&context);
	return nullptr;
}

// The stack pointer of a thread is in a block, not in its stack.
static NOINLINE void guard_page()
{
	start(leave_stack);
	await(1);
}

// ---- processes and signals ----

static NOINLINE void fork_and_leak()
{
	pid_t child = fork();

	if (child)
		waitpid(child, nullptr, 0);
	else
		for (int i = 0; i < 10; i++)
			malloc(1337);
}

static NOINLINE void fork_threaded()
{
	pid_t child;

	of_thread = malloc(1337);
	child = fork();
	if (child)
		waitpid(child, nullptr, 0);
	else
		pthread_join(start([](void *) -> void * { exit(0); }), nullptr);
}

// Calls that wait for a stop are interrupted by these, and so is the exit.
static NOINLINE void signal_during_stop_the_world()
{
	struct sigaction action = {};
	pid_t parent = getpid();

	action.sa_handler = [](int) { n_ready = 1; };
	sigaction(SIGPROF, &action, nullptr);
	if (!fork()) {
		while (getppid() == parent) {
			kill(parent, SIGCHLD);
			kill(parent, SIGPROF);
		}
		_exit(0);
	}
	await(1);
	malloc(1337);
}

char unreadable[10 << 20];

// Parts of a block and of the data can't be read.
static NOINLINE void leak_check_segv()
{
	const uintptr_t page = 4096, bytes = 4 * page;
	char *made = static_cast<char *>(malloc(sizeof(unreadable)));

	for (char *part : {made, unreadable}) {
		uintptr_t at = (reinterpret_cast<uintptr_t>(part) + page - 1) & -page;

		mprotect(reinterpret_cast<void *>(at), bytes, PROT_NONE);
	}
}

static const reach_case cases[] = {
#define CASE(name) {#name, name}
	CASE(create_thread_leak), CASE(create_thread_leak_arg), CASE(create_thread_leak_retval),
	CASE(create_thread_leak_detached),
	CASE(leak_check_before_thread_started), CASE(cleanup_in_tsd_destructor),
	CASE(detached_thread_dlsym), CASE(high_allocator_contention), CASE(libdl_deadlock),
	CASE(swapcontext_heap), CASE(swapcontext_stack), CASE(guard_page), CASE(fork_and_leak),
	CASE(fork_threaded), CASE(signal_during_stop_the_world), CASE(leak_check_segv),
#undef CASE
};

int main(int argc, char **argv)
{
	int status = run_cases(cases, sizeof(cases) / sizeof(*cases), argc, argv);

	clear_registers();
	return status;
}
