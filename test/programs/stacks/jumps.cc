/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Signal handlers that leave what they interrupted, most often a wrapper: jumps WAY [N_SIGNALS]. With libbump preloaded, as a
 * call of another malloc can't be left in its middle. At the end it prints how many blocks of keep_block it began to get,
 * how many it got, and how many keep_after got when all was over.
 */
#include <atomic>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "shim/ranges/torsh.h"

namespace {

constexpr int n_after = 9000;
constexpr int period_us = 60;
constexpr int alternate_bytes = 65536;

std::atomic<unsigned long> n_begun, n_got, n_signals;
unsigned long n_wanted = 3000;
volatile bool may_leave;
volatile int n_nested;
volatile size_t n_bytes = 128;
sigjmp_buf back;
ucontext_t back_context;

/* The C library declares that these throw nothing: a handler of ours does. */
void *(*volatile allocate)(size_t) = malloc;
void (*volatile release)(void *) = free;
void *(*volatile resize)(void *, size_t) = realloc;
void *(*volatile map)(void *, size_t, int, int, int, off_t) = mmap;
int (*volatile unmap)(void *, size_t) = munmap;
int (*volatile advise)(void *, size_t, int) = madvise;
void *(*volatile remap)(void *, size_t, size_t, int, ...) = mremap;

} // namespace

extern "C" void keep_block()
{
	n_begun++;
	if (allocate(48))
		n_got++;
}

extern "C" void keep_after()
{
	if (!allocate(40))
		abort();
}

/* Every kind of wrapper, from stacks of many depths. */
extern "C" void work(int depth)
{
	char *p;

	if (depth > 0) {
		volatile char space[96];

		space[0] = 0;
		work(depth - 1);
		space[1] = space[0];
		return;
	}
	keep_block();
	release(resize(allocate(100), 200));
	p = static_cast<char *>(map(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	advise(p, 4096, MADV_DONTNEED);
	p = static_cast<char *>(remap(p, 8192, 4096, 0));
	unmap(p, 4096);
}

namespace {

char missing[] = "/nonexistent/program", *const nothing[] = {missing, nullptr};

void give_back(void *p)
{
	release(p);
}

/* The wrappers that work() has not: each in its turn, so that a signal interrupts any of them. */
void (*const others[])() = {
	[] { operator delete(operator new(n_bytes)); },
	[] { operator delete[](operator new[](n_bytes, std::nothrow), std::nothrow); },
	[] {
		constexpr auto alignment = std::align_val_t(64);

		operator delete(operator new(n_bytes, alignment), n_bytes, alignment);
	},
	[] { give_back(calloc(3, n_bytes)); },
	[] { give_back(reallocarray(nullptr, 3, n_bytes)); },
	[] { give_back(aligned_alloc(64, n_bytes)); },
	[] { give_back(memalign(64, n_bytes)); },
	[] {
		void *p = nullptr;

		if (!posix_memalign(&p, 64, n_bytes))
			give_back(p);
	},
	[] { n_bytes = malloc_usable_size(allocate(n_bytes)) ? 128 : 0; },
	[] { unmap(mmap64(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 8192); },
	[] {
		sbrk(4096);
		sbrk(-4096);
	},
	[] {
		char *end = static_cast<char *>(sbrk(0));

		brk(end + 4096);
		brk(end);
	},
	[] {
		char name[16];

		prctl(PR_GET_NAME, name);
	},
	[] { syscall(SYS_getppid); },
	[] { execv(missing, nothing); },
	[] { execl(missing, missing, nullptr); },
	[] { execvpe("nonexistent_program", nothing, environ); },
	[] {
		pid_t pid;

		posix_spawn(&pid, missing, nullptr, nullptr, nothing, environ);
	},
	[] { dlsym(RTLD_DEFAULT, "malloc"); },
	[] {
		torsh_range_push("left");
		torsh_range_pop();
		torsh_mark("left");
		torsh_scalar("left", 1);
	},
};

void work_for_ever()
{
	for (int i = 0; n_signals < n_wanted; i++) {
		may_leave = true;
		work(i * 7 % 23);
		may_leave = false;
	}
}

/* As many signals for each of them. */
void work_with_others_for_ever()
{
	for (unsigned long i; (i = n_signals) < n_wanted;) {
		may_leave = true;
		others[i % (sizeof(others) / sizeof(*others))]();
		may_leave = false;
	}
}

bool is_to_leave()
{
	bool may = may_leave;

	n_signals++;
	may_leave = false;
	return may;
}

void jump(int)
{
	if (is_to_leave())
		siglongjmp(back, 1);
}

/* Calls wrappers itself, so that the next signal interrupts those. */
void allocate_and_jump(int)
{
	if (!may_leave)
		return;
	if (++n_nested < 3)
		for (int i = 0; i < 200; i++)
			keep_block();
	jump(0);
}

void stop_signals();

void allocate_only(int)
{
	for (int i = 0; i < 3; i++)
		keep_block();
	/* On a slow machine this takes longer than a period: what it interrupts does not go on then. */
	if (++n_signals >= n_wanted)
		stop_signals();
}

void set_context(int)
{
	if (is_to_leave())
		setcontext(&back_context);
}

void throw_out(int)
{
	sigset_t none;

	if (!is_to_leave())
		return;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, nullptr);
	throw 1;
}

ucontext_t interrupted, fiber;

/* Another stack goes on while the interrupted one stands still, in the middle of whatever it did. */
void switch_stacks(int)
{
	n_signals++;
	swapcontext(&interrupted, &fiber);
}

void fiber_main()
{
	for (;;) {
		work(3);
		swapcontext(&fiber, &interrupted);
	}
}

void start_signals(void (*handler)(int), int flags = 0)
{
	struct sigaction action = {};
	const itimerval timer = {{0, period_us}, {0, period_us}};

	action.sa_handler = handler;
	action.sa_flags = flags;
	sigaction(SIGALRM, &action, nullptr);
	setitimer(ITIMER_REAL, &timer, nullptr);
}

void stop_signals()
{
	const itimerval none = {};

	setitimer(ITIMER_REAL, &none, nullptr);
	signal(SIGALRM, SIG_IGN);
}

void with_siglongjmp(void (*handler)(int), int flags, void (*work_on)() = work_for_ever)
{
	start_signals(handler, flags);
	sigsetjmp(back, 1);
	n_nested = 0;
	work_on();
}

void with_setcontext()
{
	start_signals(set_context);
	getcontext(&back_context);
	work_for_ever();
}

void with_exceptions()
{
	start_signals(throw_out);
	while (n_signals < n_wanted) {
		try {
			work_for_ever();
		} catch (int) {
		}
	}
}

void with_fibers()
{
	static char stack[alternate_bytes * 4];

	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = sizeof(stack);
	sigaddset(&fiber.uc_sigmask, SIGALRM);
	makecontext(&fiber, fiber_main, 0);
	start_signals(switch_stacks);
	work_for_ever();
}

void *run_cancelled(void *)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
	for (;;)
		work(5);
	return nullptr;
}

void with_cancellation()
{
	for (unsigned long i = 0; i < n_wanted; i++) {
		unsigned long n = n_got;
		pthread_t thread;

		pthread_create(&thread, nullptr, run_cancelled, nullptr);
		while (n_got < n + 20 + i % 13)
			;
		pthread_cancel(thread);
		pthread_join(thread, nullptr);
	}
}

void use_alternate_stack()
{
	static char space[alternate_bytes];
	stack_t stack = {};

	stack.ss_sp = space;
	stack.ss_size = sizeof(space);
	sigaltstack(&stack, nullptr);
}

bool live(const char *way)
{
	if (!strcmp(way, "siglongjmp")) {
		with_siglongjmp(jump, 0);
	} else if (!strcmp(way, "siglongjmp_out_of_others")) {
		with_siglongjmp(jump, 0, work_with_others_for_ever);
	} else if (!strcmp(way, "siglongjmp_off_an_alternate_stack")) {
		use_alternate_stack();
		with_siglongjmp(jump, SA_ONSTACK);
	} else if (!strcmp(way, "siglongjmp_out_of_handlers_of_handlers")) {
		with_siglongjmp(allocate_and_jump, SA_NODEFER);
	} else if (!strcmp(way, "setcontext")) {
		with_setcontext();
	} else if (!strcmp(way, "exception")) {
		with_exceptions();
	} else if (!strcmp(way, "cancel")) {
		with_cancellation();
	} else if (!strcmp(way, "fibers")) {
		with_fibers();
	} else if (!strcmp(way, "alternate_stack")) {
		use_alternate_stack();
		start_signals(allocate_only, SA_ONSTACK);
		work_for_ever();
	} else {
		return false;
	}
	return true;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc > 2)
		n_wanted = strtoul(argv[2], nullptr, 10);
	if (argc < 2 || !live(argv[1]))
		return 2;
	stop_signals();
	for (int i = 0; i < n_after; i++)
		keep_after();
	printf("%lu %lu %d\n", n_begun.load(), n_got.load(), n_after);
	return 0;
}
