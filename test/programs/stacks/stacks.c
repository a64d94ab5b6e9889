/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Allocations from places with stacks that are hard to unwind. Each leaks one block from leak_HOW,
 * called through known functions; test/e2e/heap/stacks.py has the chains.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static void *volatile kept;

static void leak_plain(void)
{
	kept = malloc(101);
}

static void leak_in_alloca(void)
{
	kept = malloc(102);
}

static void with_alloca(size_t n)
{
	volatile char *room = alloca(n);

	room[0] = 1;
	leak_in_alloca();
	room[n - 1] = 1;
}

static void leak_in_variable_array(void)
{
	kept = malloc(103);
}

static void with_variable_array(size_t n)
{
	volatile char room[n];

	room[n - 1] = 0;
	leak_in_variable_array();
	room[0] = room[n - 1];
}

static void leak_aligned_frame(void)
{
	kept = malloc(104);
}

static void with_aligned_frame(void)
{
	volatile char room[64] __attribute__((aligned(256)));

	room[0] = 1;
	leak_aligned_frame();
	room[63] = room[0];
}

static int leak_in_comparison(const void *a, const void *b)
{
	if (!kept)
		kept = malloc(105);
	return *(const int *)a - *(const int *)b;
}

static void with_qsort(void)
{
	int numbers[] = {3, 1, 2};

	kept = NULL;
	qsort(numbers, 3, sizeof(int), leak_in_comparison);
}

static void leak_in_signal(int number)
{
	(void)number;
	kept = malloc(106);
}

static void with_signal(void)
{
	raise(SIGUSR1);
}

static void leak_on_other_stack(int number)
{
	(void)number;
	kept = malloc(107);
}

static void with_other_stack(void)
{
	raise(SIGUSR2);
}

static void with_signals(void)
{
	static char stack[64 << 10];
	stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction plain = {.sa_handler = leak_in_signal};
	struct sigaction on_other = {.sa_handler = leak_on_other_stack, .sa_flags = SA_ONSTACK};

	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &plain, NULL);
	sigaction(SIGUSR2, &on_other, NULL);
	with_signal();
	with_other_stack();
}

static jmp_buf back;

static void leak_before_jump(int depth)
{
	if (depth > 0)
		leak_before_jump(depth - 1);
	if (depth)
		return;
	kept = malloc(108);
	longjmp(back, 1);
}

static void leak_after_jump(void)
{
	kept = malloc(109);
}

static void with_jump(void)
{
	if (!setjmp(back))
		leak_before_jump(5);
	else
		leak_after_jump();
}

static ucontext_t main_context, coroutine;

static void leak_in_coroutine(int round)
{
	(void)round;
	kept = malloc(110);
}

static void run_coroutine(void)
{
	for (int round = 0; round < 3; round++) {
		leak_in_coroutine(round);
		swapcontext(&coroutine, &main_context);
	}
}

static void resume_coroutine(int depth)
{
	if (depth)
		resume_coroutine(depth - 1);
	else
		swapcontext(&main_context, &coroutine);
}

static void leak_between_coroutines(void)
{
	kept = malloc(111);
}

static void with_coroutine(void)
{
	size_t n = 128 << 10;
	char *stack = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = n;
	makecontext(&coroutine, run_coroutine, 0);
	for (int i = 0; i < 3; i++) {
		resume_coroutine(i);
		leak_between_coroutines();
	}
	munmap(stack, n);
	leak_plain();
}

static void leak_deep(int depth)
{
	if (depth)
		leak_deep(depth - 1);
	else
		kept = malloc(112);
}

static void *leak_in_thread(void *unused)
{
	(void)unused;
	kept = malloc(113);
	return NULL;
}

static void with_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, leak_in_thread, NULL);
	pthread_join(thread, NULL);
}

/*
 * The same addresses get another library's code: a frame of the first may not show in stacks of the
 * second.
 */
static void with_library(const char *folder, const char *name)
{
	char path[4096];
	void *library;
	void (*call)(void **);

	snprintf(path, sizeof(path), "%s/lib%s.so", folder, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&call = dlsym(library, "leak_in_library");
	for (int i = 0; i < 10; i++)
		call((void **)&kept);
	printf("%p\n", (void *)call);
	dlclose(library);
}

static void leak_without_frame_pointer(int a, int b, int c)
{
	kept = malloc((size_t)(a + b + c));
}

static void without_frame_pointer(int a, int b)
{
	leak_without_frame_pointer(a, b, 1);
	leak_without_frame_pointer(a, b, 2);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	leak_plain();
	with_alloca(3000);
	with_variable_array(777);
	with_aligned_frame();
	with_qsort();
	with_signals();
	with_jump();
	with_coroutine();
	leak_deep(300);
	with_thread();
	without_frame_pointer(100, 13);
	for (int i = 0; i < 3; i++) {
		with_library(argv[1], "first");
		with_library(argv[1], "second");
	}
	return 0;
}
