/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How many bytes of stack each function takes that the agent interposes: stack_use [LIBRARY
 * NAME...] prints a line for each: its name, those of the first call, those of later ones, and
 * "fits" when a third one came back on a stack of 4 KiB. The C library's are listed here; of the
 * names all others are called with pointers to zeros, as they stand in the libraries; so are those
 * that NVTX is given for its slots, under names like "nvtx-1-9", and ITT for its list, named as
 * "itt-task_begin". Those that don't return are called in a child. Or stack_use handler: a crash is
 * handled on an alternate stack of 8 KiB, and ends with 42.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "test/programs/stacks/stack_use.h"

#define STACK_BYTES 65536
#define SMALL_BYTES 4096
#define ZEROS_BYTES 65536
#define N_AGAIN 5
#define N_TAKEN (N_AGAIN + 2)
#define HANDLER_STACK_BYTES 8192
#define PATTERN 0xa5
#define NOWHERE "/nonexistent/program"
#define FOUND "/bin/true"
#define N_MANY 1000 /* variables, none of which the agent needs */

static char *stack; /* of STACK_BYTES, shared with children */
static char *small; /* of SMALL_BYTES, below which there is nothing */
static ucontext_t caller, callee;
static char *const arguments[] = {(char *)NOWHERE, NULL};
static const char *many[N_MANY + 1];
static void *volatile sink, *pages, *library;
static volatile int number;

#if !__GLIBC_PREREQ(2, 34)
static int execveat(int directory, const char *path, char *const argv[], char *const envp[],
		    int flags)
{
	return (int)syscall(SYS_execveat, directory, path, argv, envp, flags);
}
#endif

static void *block(void)
{
	return sink;
}

/* For calls that each take one away. */
static void *blocks[N_TAKEN], *mappings[N_TAKEN];

static void *taken(void **from)
{
	for (int i = 0; i < N_TAKEN; i++) {
		void *one = from[i];

		from[i] = NULL;
		if (one)
			return one;
	}
	return NULL;
}

static int spawn_and_wait(void)
{
	pid_t child;
	int error = posix_spawn(&child, FOUND, NULL, NULL, arguments, environ);

	if (!error)
		waitpid(child, NULL, 0);
	return error;
}

static void *return_at_once(void *nothing)
{
	return nothing;
}

static int create_and_join(void)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, return_at_once, NULL);

	return error ? error : pthread_join(thread, NULL);
}

/* A set with a signal that is blocked, and pending for the call that waits for it. */
static sigset_t *pending(void)
{
	static sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR2);
	return &set;
}

static int open_and_close(void)
{
	static const sigset_t none;

	return close(signalfd(-1, &none, 0));
}

/* The declarations of some are left out of glibc's headers, or deprecated. */
sighandler_t __sysv_signal(int number, sighandler_t handler);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define CALLS                                                                                    \
	CALL(malloc, sink = malloc(100))                                                         \
	CALL(realloc, sink = realloc(block(), 300))                                              \
	CALL(reallocarray, sink = reallocarray(block(), 10, 50))                                 \
	CALL(malloc_usable_size, number = (int)malloc_usable_size(block()))                      \
	CALL(free, free(taken(blocks)))                                                          \
	CALL(calloc, sink = calloc(3, 50))                                                       \
	CALL(posix_memalign, number = posix_memalign((void **)&sink, 64, 100))                   \
	CALL(aligned_alloc, sink = aligned_alloc(64, 128))                                       \
	CALL(memalign, sink = memalign(64, 100))                                                 \
	CALL(valloc, sink = valloc(100))                                                         \
	CALL(pvalloc, sink = pvalloc(100))                                                       \
	CALL(mmap, sink = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))       \
	CALL(madvise, number = madvise(pages, 4096, MADV_DONTNEED))                              \
	CALL(mremap, sink = mremap(pages, 4096, 4096, 0))                                        \
	CALL(munmap, number = munmap(taken(mappings), 4096))                                     \
	CALL(mmap64, sink = mmap64(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))   \
	CALL(sbrk, sink = sbrk(64))                                                              \
	CALL(brk, number = brk(sbrk(0)))                                                         \
	CALL(prctl, number = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0))                                 \
	CALL(syscall, number = (int)syscall(SYS_getppid))                                        \
	CALL(recv, number = (int)recv(-1, pages, 1, 0))                                          \
	CALL(send, number = (int)send(-1, pages, 1, 0))                                          \
	CALL(pthread_create, number = create_and_join())                                         \
	CALL(sigaction, number = sigaction(SIGUSR1, NULL, NULL))                                 \
	CALL(signal, number = signal(SIGUSR1, SIG_IGN) == SIG_ERR)                               \
	CALL(ssignal, number = ssignal(SIGUSR1, SIG_IGN) == SIG_ERR)                             \
	CALL(sysv_signal, number = sysv_signal(SIGUSR1, SIG_IGN) == SIG_ERR)                     \
	CALL(__sysv_signal, number = __sysv_signal(SIGUSR1, SIG_IGN) == SIG_ERR)                 \
	CALL(sigset, number = sigset(SIGUSR1, SIG_IGN) == SIG_ERR)                               \
	CALL(sigprocmask, number = sigprocmask(SIG_BLOCK, NULL, NULL))                           \
	CALL(pthread_sigmask, number = pthread_sigmask(SIG_BLOCK, NULL, NULL))                   \
	CALL(sigpending, number = sigpending(&(sigset_t){0}))                                    \
	CALL(sigwait, number = sigwait(pending(), &(int){0}))                                    \
	CALL(sigwaitinfo, number = sigwaitinfo(pending(), NULL))                                 \
	CALL(sigtimedwait, number = sigtimedwait(pending(), NULL, &(struct timespec){0}))        \
	CALL(signalfd, number = open_and_close())                                                \
	CALL(execve, number = execve(NOWHERE, arguments, environ))                               \
	CALL(execv, number = execv(NOWHERE, arguments))                                          \
	CALL(execvp, number = execvp(NOWHERE, arguments))                                        \
	CALL(execvpe, number = execvpe(NOWHERE, arguments, environ))                             \
	CALL(execl, number = execl(NOWHERE, NOWHERE, NULL))                                      \
	CALL(execlp, number = execlp(NOWHERE, NOWHERE, NULL))                                    \
	CALL(execle, number = execle(NOWHERE, NOWHERE, NULL, environ))                           \
	CALL(fexecve, number = fexecve(-1, arguments, environ))                                  \
	CALL(execveat, number = execveat(AT_FDCWD, NOWHERE, arguments, environ, 0))              \
	CALL(posix_spawn, number = posix_spawn(NULL, NOWHERE, NULL, NULL, arguments, environ))   \
	CALL(posix_spawnp, number = posix_spawnp(NULL, NOWHERE, NULL, NULL, arguments, environ)) \
	CALL(posix_spawn_found, number = spawn_and_wait())                                       \
	CALL(execve_scrubbed, number = execve(NOWHERE, arguments, (char **)many))                \
	CALL(dlopen, sink = dlopen("libm.so.6", RTLD_NOW))                                       \
	CALL(dlsym, number = dlsym(library, "cos") != NULL)                                      \
	CALL(dlclose, number = dlclose(library))                                                 \
	CALL(dlmopen, number = dlmopen(LM_ID_BASE, NOWHERE, RTLD_NOW) != NULL)                   \
	CALL_IN_CHILD(execve_found, number = execve(FOUND, arguments, environ))                  \
	CALL_IN_CHILD(execlp_found, number = execlp("true", "true", NULL))                       \
	CALL_IN_CHILD(_exit, _exit(0))                                                           \
	CALL_IN_CHILD(_Exit, _Exit(0))                                                           \
	CALL_IN_CHILD(quick_exit, quick_exit(0))                                                 \
	CALL_IN_CHILD(abort, abort())                                                            \
	CALL_IN_CHILD(__assert_fail, __assert_fail("", "", 1, ""))                               \
	CALL_IN_CHILD(__assert_perror_fail, __assert_perror_fail(EINVAL, "", 1, ""))             \
	CALL_IN_CHILD(__assert, __assert("", "", 1))

#define CALL_IN_CHILD CALL
#define CALL(name, call)              \
	static void call_##name(void) \
	{                             \
		call;                 \
	}
CALLS
#undef CALL
#undef CALL_IN_CHILD

static void run_on(char *at, size_t n_bytes, void (*call)(void))
{
	getcontext(&callee);
	callee.uc_stack.ss_sp = at;
	callee.uc_stack.ss_size = n_bytes;
	callee.uc_link = &caller;
	makecontext(&callee, call, 0);
	swapcontext(&caller, &callee);
}

static size_t count_touched(void)
{
	size_t untouched = 0;

	while (untouched < STACK_BYTES && (unsigned char)stack[untouched] == PATTERN)
		untouched++;
	return STACK_BYTES - untouched;
}

static size_t measure(void (*call)(void))
{
	memset(stack, PATTERN, STACK_BYTES);
	run_on(stack, STACK_BYTES, call);
	return count_touched();
}

static void report(const char *name, size_t first, size_t again, int fits)
{
	printf("%s %zu %zu %s\n", name, first, again, fits ? "fits" : "overflows");
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void measure_here(const char *name, void (*call)(void))
{
	size_t first = measure(call), again = first;

	/* Now and then one does what others began. */
	for (int i = 0; i < N_AGAIN; i++)
		again = smaller(again, measure(call));
	/* What overflows ends here, which whoever reads the output sees by its end. */
	run_on(small, SMALL_BYTES, call);
	report(name, first, again, 1);
}

/* In a child, with which the stack is shared. Returns its status. */
static int run_in_child(char *at, size_t n_bytes, void (*call)(void))
{
	int status = 0;
	pid_t child = (pid_t)syscall(SYS_fork);

	if (!child) {
		/* What a child does at its very start is no call's. */
		free(malloc(1));
		memset(stack, PATTERN, STACK_BYTES);
		run_on(at, n_bytes, call);
		syscall(SYS_exit_group, 0);
	}
	waitpid(child, &status, 0);
	return status;
}

static void measure_in_child(const char *name, void (*call)(void))
{
	size_t used;
	int status;

	run_in_child(stack, STACK_BYTES, call);
	used = count_touched();
	status = run_in_child(small, SMALL_BYTES, call);
	report(name, used, used, !WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV);
}

/* The child begins, allocates and ends on the stack that its parent was on. */
static void call_fork(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		free(malloc(10));
		_exit(0);
	}
	waitpid(child, &status, 0);
	number = status;
}

static void measure_fork(void)
{
	char *shared = stack;
	size_t first, again;

	/* Its own in parent and child: these run at the same time. */
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	first = measure(call_fork);
	again = measure(call_fork);
	run_on(small, SMALL_BYTES, call_fork);
	report("fork", first, again, !number);
	stack = shared;
}

/* ---- functions by name ---- */

static function *called;

static void call_by_name(void)
{
	number = (int)called(with[0], with[1], with[2], with[3], with[4], with[5], with[6], with[7],
			     with[8], with[9], with[10], with[11]);
}

/* What zeros won't do for. */
static void set_arguments(const char *name, void *zeros)
{
	static const struct {
		const char *start;
		int place; /* of how many there are of something */
	} counts[] = {{"cuMemcpyBatchAsync", 3},
		      {"cuMemPrefetchBatch", 2},
		      {"cuMemDiscard", 2},
		      {"cuMemcpy3DBatch", 0},
		      {"cuMemBatchDecomp", 1}};

	for (int i = 0; i < 12; i++)
		with[i] = zeros;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (begins(name, counts[i].start))
			with[counts[i].place] = (void *)1;
	if (begins(name, "_Zd") || begins(name, "free_") || !strcmp(name, "cfree"))
		with[0] = malloc(100);
	if (begins(name, "_Zn"))
		with[0] = (void *)64;
	if (strstr(name, "St11align_val_t"))
		with[begins(name, "_ZdlPvm") || begins(name, "_ZdaPvm") ? 2 : 1] = (void *)64;
	if (begins(name, "torsh_v1_") || begins(name, "cuGetProcAddress"))
		with[0] = (void *)"cuInit";
	if (begins(name, "nvtx-"))
		set_nvtx_arguments(name + strlen("nvtx-"), zeros);
	if (begins(name, "itt-"))
		set_itt_arguments(name + strlen("itt-"));
	if (!strcmp(name, "InitializeInjectionNvtx2"))
		with[0] = (void *)get_table;
	if (!strcmp(name, "__itt_api_init"))
		with[0] = &itt_client;
}

static size_t measure_by_name(const char *name, void *zeros)
{
	set_arguments(name, zeros);
	return measure(call_by_name);
}

static void measure_called(const char *name, void *zeros)
{
	size_t first, again;

	first = again = measure_by_name(name, zeros);
	/* Sometimes one checks what others began. */
	for (int i = 0; i < N_AGAIN; i++)
		again = smaller(again, measure_by_name(name, zeros));
	set_arguments(name, zeros);
	run_on(small, SMALL_BYTES, call_by_name);
	report(name, first, again, 1);
}

static void measure_slots(void *zeros)
{
	char name[32];

	for (int module = 0; module < N_MODULES; module++)
		for (int slot = 0; slot < N_SLOTS; slot++) {
			called = slots[module][slot];
			snprintf(name, sizeof(name), "nvtx-%d-%d", module, slot);
			if (called)
				measure_called(name, zeros);
		}
}

static int measure_names(const char *library, char **names)
{
	void *zeros =
		mmap(NULL, ZEROS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!dlopen(library, RTLD_NOW | RTLD_GLOBAL))
		return 3;
	make_itt_handles();
	for (; *names; names++) {
		called = begins(*names, "itt-") ? find_itt(*names + strlen("itt-"))
						: (function *)dlsym(RTLD_DEFAULT, *names);
		if (called)
			measure_called(*names, zeros);
	}
	measure_slots(zeros);
	return 0;
}

static void handle(int signal)
{
	free(malloc((size_t)signal));
	_exit(42);
}

static int crash(void)
{
	static char space[HANDLER_STACK_BYTES];
	stack_t alternate = {.ss_sp = space, .ss_size = sizeof(space)};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};

	/* Where the machine's registers alone take so much no handler has room. */
	if (getauxval(AT_MINSIGSTKSZ) > HANDLER_STACK_BYTES / 2)
		return 77;
	sigaltstack(&alternate, NULL);
	sigaction(SIGSEGV, &action, NULL);
	*(volatile int *)8 = 1;
	return 1;
}

static void measure_all(void)
{
#define CALL(name, call) measure_here(#name, call_##name);
#define CALL_IN_CHILD(name, call) measure_in_child(#name, call_##name);
	CALLS
#undef CALL
#undef CALL_IN_CHILD
	measure_fork();
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return strcmp(argv[1], "handler") ? 2 : crash();
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	small = mmap(NULL, SMALL_BYTES * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	mprotect(small, SMALL_BYTES, PROT_NONE);
	small += SMALL_BYTES;
	sink = malloc(100);
	for (int i = 0; i < N_MANY; i++)
		many[i] = "VARIABLE=value";
	pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < N_TAKEN; i++) {
		blocks[i] = malloc(200);
		mappings[i] = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		library = dlopen("libm.so.6", RTLD_NOW);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	measure_all();
	return argc > 2 ? measure_names(argv[1], argv + 2) : 0;
}
