/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 *	nested interrupts N	a wrapper of munmap is interrupted by a handler that unmaps, N deep;
 *				with libnest preloaded
 *	nested domains N	ranges of N domains, open at once, then of as many one after the
 *				other, then of two more
 *	nested steps N		three steps, in each N ranges within one another
 *
 * Prints what calls returned, or how many there were.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/ranges/torsh.h"

#define PAGE 4096u

extern int n_signals_left __attribute__((weak));

static char *volatile next_page;
static volatile int n_unmapped;

static void unmap_one(int signal)
{
	char *page = next_page;

	(void)signal;
	next_page += PAGE;
	if (munmap(page, PAGE))
		abort();
	n_unmapped++;
}

static void interrupt(int n)
{
	struct sigaction action = {.sa_handler = unmap_one, .sa_flags = SA_NODEFER};

	if (!&n_signals_left)
		abort();
	sigaction(SIGUSR1, &action, NULL);
	next_page = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	n_signals_left = n - 1;
	unmap_one(0);
	printf("%d\n", n_unmapped);
}

static int push_in(int domain)
{
	struct torsh_attributes attributes;
	char name[32];

	memset(&attributes, 0, sizeof(attributes));
	attributes.size = sizeof(attributes);
	snprintf(name, sizeof(name), "domain %d", domain);
	attributes.domain = name;
	return torsh_range_push_with("range", &attributes);
}

static int pop_from(int domain)
{
	char name[32];

	snprintf(name, sizeof(name), "domain %d", domain);
	return torsh_range_pop_from(name);
}

static void use_domains(int n)
{
	for (int i = 0; i < n; i++)
		printf("%d ", push_in(i));
	/* Not in the order in which they were opened. */
	for (int i = 0; i < n; i++)
		printf("%d ", pop_from(i));
	printf("\n");
	for (int i = n; i < 2 * n; i++) {
		printf("%d ", push_in(i));
		printf("%d ", push_in(i));
		printf("%d ", pop_from(i));
		printf("%d ", pop_from(i));
	}
	printf("\n");
	printf("%d %d ", push_in(2 * n), push_in(2 * n + 1));
	printf("%d %d\n", pop_from(2 * n), pop_from(2 * n + 1));
}

static void use_steps(int n)
{
	for (uint64_t step = 0; step < 3; step++) {
		torsh_step(step);
		for (int i = 0; i < n; i++)
			torsh_range_push("range");
		for (int i = 0; i < n; i++)
			torsh_range_pop();
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (!strcmp(what, "interrupts"))
		interrupt(n);
	else if (!strcmp(what, "domains"))
		use_domains(n);
	else if (!strcmp(what, "steps"))
		use_steps(n);
	return 0;
}
