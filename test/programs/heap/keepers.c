/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Has the C library keep about 10 MB in blocks of its own, by requesting the same again and again.
 *
 *	keepers WAY ONCE
 *
 * WAY is a row of the table below; ONCE 1 does each once, as programs do that leak nothing.
 */
#include <libintl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define TEXT_BYTES 2000

int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

static char text[TEXT_BYTES];

static void do_nothing(void)
{
}

static void leave_open(int i)
{
	FILE *file = fopen("/dev/zero", "r");

	(void)i;
	if (!file || fgetc(file))
		exit(1);
}

static void set_variable(int i)
{
	snprintf(text, 8, "%07d", i);
	text[7] = 'x';
	setenv("VARIABLE", text, 1);
}

static void register_at_fork(int i)
{
	(void)i;
	pthread_atfork(do_nothing, do_nothing, do_nothing);
}

static void bind_domain(int i)
{
	char domain[32];

	snprintf(domain, sizeof(domain), "domain%d", i);
	bindtextdomain(domain, text);
}

static const struct {
	const char *name;
	void (*call)(int);
	int n;
} ways[] = {
	{"leave_open", leave_open, 2600},
	{"set_variable", set_variable, 5200},
	{"register_at_fork", register_at_fork, 260000},
	{"bind_domain", bind_domain, 5200},
};

#define N_WAYS (sizeof(ways) / sizeof(*ways))

int main(int argc, char **argv)
{
	struct rlimit files = {10000, 10000};

	if (argc != 3)
		return 2;
	memset(text, 'x', sizeof(text) - 1);
	setrlimit(RLIMIT_NOFILE, &files);
	for (size_t i = 0; i < N_WAYS; i++)
		for (int k = 0;
		     !strcmp(ways[i].name, argv[1]) && k < (atoi(argv[2]) ? 1 : ways[i].n); k++)
			ways[i].call(k);
	return 0;
}
