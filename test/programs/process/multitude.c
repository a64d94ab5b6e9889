/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Threads by the thousand: multitude HOW COUNT
 *
 * live COUNT: so many at a time; each gives a block back, every second keeps one, and every fifth
 * one at its end. closed COUNT: the same after all descriptors from 3 on were closed. locked COUNT:
 * the same with all memory locked; at the beginning and when all are there a line of what is in
 * memory. sequence COUNT: one after the other, each keeps a block. ended COUNT: as live. As after
 * locked, it then prints "ended" and waits for its input to end.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEPT_BYTES 48

static pthread_barrier_t all_there, may_end;
static void *volatile kept;

static void use_block(void)
{
	void *volatile block = malloc(100);

	free(block);
}

static void keep_in_crowd(void)
{
	kept = malloc(KEPT_BYTES);
	memset(kept, 1, KEPT_BYTES);
}

static void *run_in_crowd(void *argument)
{
	long i = (long)argument;

	use_block();
	if (i % 2 == 0)
		keep_in_crowd();
	pthread_barrier_wait(&all_there);
	pthread_barrier_wait(&may_end);
	if (i % 5 == 0)
		keep_in_crowd();
	return NULL;
}

static void *run_alone(void *unused)
{
	use_block();
	keep_in_crowd();
	return unused;
}

static void print_resident(void)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof(line), status)) {
		if (!strncmp(line, "VmRSS:", 6))
			fputs(line, stdout);
	}
	if (status)
		fclose(status);
	fflush(stdout);
}

static int run_crowd(long count, const pthread_attr_t *attributes, int prints)
{
	pthread_t *threads = mmap(NULL, (size_t)count * sizeof(*threads), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	pthread_barrier_init(&all_there, NULL, (unsigned)count + 1);
	pthread_barrier_init(&may_end, NULL, (unsigned)count + 1);
	for (long i = 0; i < count; i++) {
		if (pthread_create(&threads[i], attributes, run_in_crowd, (void *)i))
			return 3;
	}
	pthread_barrier_wait(&all_there);
	if (prints)
		print_resident();
	pthread_barrier_wait(&may_end);
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int run_sequence(long count, const pthread_attr_t *attributes)
{
	for (long i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, attributes, run_alone, NULL))
			return 3;
		pthread_join(thread, NULL);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[1] : "";
	long count = argc > 2 ? atol(argv[2]) : 0;
	pthread_attr_t attributes;
	int status;

	if (count < 1)
		return 2;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	if (!strcmp(how, "sequence"))
		return run_sequence(count, &attributes);
	if (!strcmp(how, "closed")) {
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
	}
	if (!strcmp(how, "locked")) {
		if (mlockall(MCL_CURRENT | MCL_FUTURE))
			return 4;
		print_resident();
	}
	status = run_crowd(count, &attributes, !strcmp(how, "locked"));
	if ((!strcmp(how, "ended") || !strcmp(how, "locked")) && puts("ended") >= 0 &&
	    !fflush(stdout))
		while (getchar() != EOF)
			;
	return status;
}
