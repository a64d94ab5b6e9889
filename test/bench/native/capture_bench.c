/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The cost of a stack capture alone, in ns: for an unchanged stack, and for one with inner frames
 * from four call sites at different depths in turn. The rest of a hook (clock, ring) is not
 * included; the cost of an empty hook is subtracted.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/modules/module_registry.h"
#include "agent/producer/counter.h"
#include "agent/stack/stack.h"
#include "shim/sys.h"

#define N_CAPTURES 4000000u
#define N_ROUNDS 5

static _Atomic uint64_t counters[N_COUNTERS];
_Atomic uint64_t *torsh_counters = counters;

uint32_t torsh_registry_add_address(uintptr_t ip, uint32_t flags, const struct module *module)
{
	(void)module;
	static _Atomic uint32_t n = 1;

	(void)ip;
	(void)flags;
	return n++;
}

void torsh_registry_flush_modules(void)
{
}

static struct stack *stack;
static struct stack_delta delta;
static volatile uint64_t n_pushed;
static bool is_capturing;

/* Like a hook: its frame pointer leads to its caller. */
__attribute__((noinline)) static void hook(void)
{
	if (is_capturing)
		torsh_stack_capture(stack, __builtin_frame_address(0), &delta);
	n_pushed += delta.n_push;
}

#define FRAMELESS __attribute__((noinline, noclone, optimize("omit-frame-pointer")))

FRAMELESS static int site_a(int n)
{
	hook();
	return n + 1;
}

FRAMELESS static int site_b(int n)
{
	volatile char room[64];

	room[0] = (char)n;
	hook();
	return n + room[0];
}

FRAMELESS static int site_c(int n)
{
	return site_b(n + 1) + 1;
}

FRAMELESS static int site_d(int n)
{
	return site_c(n + 1) * 2;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

FRAMELESS static int fixed_loop(void)
{
	int n = 0;

	for (uint32_t i = 0; i < N_CAPTURES; i++)
		n += site_a(n);
	return n;
}

FRAMELESS static int four_loop(void)
{
	int n = 0;

	for (uint32_t i = 0; i < N_CAPTURES; i += 4) {
		n += site_a(n);
		n += site_b(n);
		n += site_c(n);
		n += site_d(n);
	}
	return n;
}

typedef int loop(void);

FRAMELESS static int descend(loop *run, int depth)
{
	volatile char room[48];

	room[0] = (char)depth;
	return (depth > 0 ? descend(run, depth - 1) : run()) + room[0];
}

static double measure(loop *run, int depth)
{
	double best = 1e9;

	for (int i = 0; i < N_ROUNDS; i++) {
		double start = now_ns(), ns;

		descend(run, depth);
		ns = (now_ns() - start) / N_CAPTURES;
		if (ns < best)
			best = ns;
	}
	return best;
}

static void report(const char *name, loop *run)
{
	/* main, its two callers in the C library, _start, the loop and its site are frames too. */
	static const int depths[] = {10, 30, 80};

	printf("%-12s", name);
	for (int i = 0; i < 3; i++) {
		double empty, full;

		is_capturing = false;
		empty = measure(run, depths[i] - 9);
		is_capturing = true;
		full = measure(run, depths[i] - 9);
		printf("  depth %2d: %5.1f ns", depths[i], full - empty);
	}
	putchar('\n');
}

int main(void)
{
	torsh_stack_start();
	stack = torsh_stack_create(torsh_sys_pages(torsh_stack_bytes()));
	report("fixed stack", fixed_loop);
	report("four sites", four_loop);
	torsh_stack_destroy(stack);
	return EXIT_SUCCESS;
}
