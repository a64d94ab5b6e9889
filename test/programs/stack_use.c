/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How many bytes of stack each function takes that the agent interposes: stack_use, which prints them by name. Each is called
 * for the first time from its place, when most is learnt. Or stack_use handler: a crash is handled on an alternate stack of 8 KiB, and ends with 42.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES 65536
#define HANDLER_STACK_BYTES 8192
#define PATTERN 0xa5
#define NOWHERE "/nonexistent/program"

static char *stack;
static ucontext_t caller, callee;
static char *const arguments[] = {(char *)NOWHERE, NULL};
static void *volatile sink, *pages, *library;
static volatile int number;

#if !__GLIBC_PREREQ(2, 34)
static int execveat(int directory, const char *path, char *const argv[], char *const envp[], int flags)
{
	return (int)syscall(SYS_execveat, directory, path, argv, envp, flags);
}
#endif

static void *block(void)
{
	return sink;
}

#define CALLS                                                                                       \
	CALL(malloc, sink = malloc(100))                                                            \
	CALL(realloc, sink = realloc(block(), 300))                                                 \
	CALL(reallocarray, sink = reallocarray(block(), 10, 50))                                    \
	CALL(malloc_usable_size, number = (int)malloc_usable_size(block()))                         \
	CALL(free, free(block()))                                                                   \
	CALL(calloc, sink = calloc(3, 50))                                                          \
	CALL(posix_memalign, number = posix_memalign((void **)&sink, 64, 100))                      \
	CALL(aligned_alloc, sink = aligned_alloc(64, 128))                                          \
	CALL(memalign, sink = memalign(64, 100))                                                    \
	CALL(valloc, sink = valloc(100))                                                            \
	CALL(pvalloc, sink = pvalloc(100))                                                          \
	CALL(mmap, sink = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))          \
	CALL(madvise, number = madvise(pages, 4096, MADV_DONTNEED))                               \
	CALL(mremap, sink = mremap(pages, 8192, 4096, 0))                                         \
	CALL(munmap, number = munmap(pages, 4096))                                                \
	CALL(mmap64, sink = mmap64(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))      \
	CALL(sbrk, sink = sbrk(64))                                                                 \
	CALL(brk, number = brk(sbrk(0)))                                                            \
	CALL(prctl, number = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0))                                    \
	CALL(syscall, number = (int)syscall(SYS_getppid))                                           \
	CALL(execve, number = execve(NOWHERE, arguments, environ))                                  \
	CALL(execv, number = execv(NOWHERE, arguments))                                             \
	CALL(execvp, number = execvp(NOWHERE, arguments))                                           \
	CALL(execvpe, number = execvpe(NOWHERE, arguments, environ))                                \
	CALL(execl, number = execl(NOWHERE, NOWHERE, NULL))                                         \
	CALL(execlp, number = execlp(NOWHERE, NOWHERE, NULL))                                       \
	CALL(execle, number = execle(NOWHERE, NOWHERE, NULL, environ))                              \
	CALL(fexecve, number = fexecve(-1, arguments, environ))                                     \
	CALL(execveat, number = execveat(AT_FDCWD, NOWHERE, arguments, environ, 0))                 \
	CALL(posix_spawn, number = posix_spawn(NULL, NOWHERE, NULL, NULL, arguments, environ))      \
	CALL(posix_spawnp, number = posix_spawnp(NULL, NOWHERE, NULL, NULL, arguments, environ))    \
	CALL(dlopen, sink = dlopen("libm.so.6", RTLD_NOW))                                          \
	CALL(dlsym, number = dlsym(library, "cos") != NULL)                                         \
	CALL(dlclose, number = dlclose(library))                                                    \
	CALL(dlmopen, number = dlmopen(LM_ID_BASE, NOWHERE, RTLD_NOW) != NULL)                      \
	CALL(_exit, _exit(0))                                                    \
	CALL(_Exit, _Exit(0))                                                    \
	CALL(quick_exit, quick_exit(0))

#define CALL(name, call)               \
	static void call_##name(void) \
	{                             \
		call;                 \
	}
CALLS
#undef CALL

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
#define CALL(name, call) {#name, call_##name},
	CALLS
#undef CALL
};

static void run_on_stack(void (*call)(void))
{
	getcontext(&callee);
	callee.uc_stack.ss_sp = stack;
	callee.uc_stack.ss_size = STACK_BYTES;
	callee.uc_link = &caller;
	makecontext(&callee, call, 0);
	swapcontext(&caller, &callee);
}

/* In a child, with which the stack is shared: some don't return. */
static size_t measure(void (*call)(void), int n_times)
{
	size_t untouched = 0;
	pid_t child;

	child = (pid_t)syscall(SYS_fork);
	if (!child) {
		/* What a child does at its very start is no call's. */
		free(malloc(1));
		for (int i = 0; i < n_times; i++) {
			memset(stack, PATTERN, STACK_BYTES);
			run_on_stack(call);
		}
		syscall(SYS_exit_group, 0);
	}
	waitpid(child, NULL, 0);
	while (untouched < STACK_BYTES && (unsigned char)stack[untouched] == PATTERN)
		untouched++;
	return STACK_BYTES - untouched;
}

static void measure_all(void)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		printf("%s %zu\n", calls[i].name, measure(calls[i].call, 1));
	/* What is known already. */
	printf("malloc_again %zu\n", measure(call_malloc, 2));
	printf("calloc_again %zu\n", measure(call_calloc, 2));
	printf("memalign_again %zu\n", measure(call_memalign, 2));
	printf("mmap_again %zu\n", measure(call_mmap, 2));
	printf("madvise_again %zu\n", measure(call_madvise, 2));
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

int main(int argc, char **argv)
{
	if (argc > 1)
		return strcmp(argv[1], "handler") ? 2 : crash();
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sink = malloc(100);
	pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	library = dlopen("libm.so.6", RTLD_NOW);
	setvbuf(stdout, NULL, _IOLBF, 0);
	measure_all();
	return 0;
}
