/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Makes memory of most kinds, and prints what of it is resident: by /proc/self/smaps and pagemap,
 * read without an allocation.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
static char text[4 << 20];
static int maps, pages;

/* Read without stdio, which allocates. */
static void read_smaps(void)
{
	size_t n = 0;
	ssize_t got;

	lseek(maps, 0, SEEK_SET);
	while ((got = read(maps, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
}

/* The sum of a field over all areas, or over the area with that begin or name. */
static uint64_t sum(const char *field, uintptr_t begin, const char *name)
{
	uint64_t bytes = 0;
	int is_in = 0;

	for (char *line = text; *line; line = strchr(line, '\n') + 1) {
		char *end = strchr(line, '\n');
		if (*line < 'A' || *line > 'Z')
			is_in = (!begin && !name) || (begin && strtoull(line, NULL, 16) == begin) ||
				(name && memmem(line, (size_t)(end - line), name, strlen(name)));
		else if (is_in && !strncmp(line, field, strlen(field)))
			bytes += strtoull(line + strlen(field), NULL, 10) << 10;
	}
	return bytes;
}

/* Bytes of a range that are in memory, by pagemap. */
static uint64_t resident(const void *at, size_t size)
{
	uintptr_t begin = (uintptr_t)at, end = begin + size;
	uint64_t bytes = 0;

	for (uintptr_t page = begin / PAGE; page * PAGE < end; page++) {
		uint64_t entry = 0;
		uintptr_t from = page * PAGE > begin ? page * PAGE : begin,
			  to = (page + 1) * PAGE < end ? (page + 1) * PAGE : end;

		if (pread(pages, &entry, 8, (off_t)(page * 8)) == 8 && entry >> 63)
			bytes += to - from;
	}
	return bytes;
}

static void touch(volatile char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		at[i * PAGE] = 1;
}

static void say(const char *name, uint64_t number)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%s %llu\n", name, (unsigned long long)number);

	if (write(1, line, (size_t)n) != n)
		_exit(9);
}

#define BLOCKS 20000
static char *blocks[BLOCKS];
static char *large, *untouched, *mapped, *of_file, *shared;

static __attribute__((noinline)) void small_blocks(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(200);
		memset(blocks[i], 1, 200);
	}
}

static __attribute__((noinline)) void large_block(void)
{
	large = malloc(8 << 20);
	touch(large, 700);
}

static __attribute__((noinline)) void untouched_block(void)
{
	untouched = malloc(1 << 30);
}

static __attribute__((noinline)) void map_some(void)
{
	mapped =
		mmap(NULL, 1000 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	touch(mapped, 123);
}

static __attribute__((noinline)) void map_shared(void)
{
	shared = mmap(NULL, 1000 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	touch(shared, 600);
}

static void map_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, 400 * PAGE))
		_exit(9);
	of_file = mmap(NULL, 400 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	touch(of_file, 77);
}

static int ready[2];

static void *run_thread(void *unused)
{
	volatile char stack[50 * PAGE];

	prctl(PR_SET_NAME, "counted");
	touch(stack, 50);
	close(ready[1]);
	for (;;)
		pause();
	return unused;
}

static void start_thread(void)
{
	pthread_t thread;
	char none;

	if (pipe(ready) || pthread_create(&thread, NULL, run_thread, NULL) ||
	    read(ready[0], &none, 1))
		_exit(9);
}

static void free_most(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		if (i % 50)
			free(blocks[i]);
	}
}

static void report(void)
{
	uint64_t small = 0;

	read_smaps();
	for (int i = 0; i < BLOCKS; i += 50)
		small += resident(blocks[i], 200);
	say("rss", sum("Rss:", 0, NULL));
	say("pss", sum("Pss:", 0, NULL));
	say("arena", sum("Rss:", 0, "[heap]"));
	say("stack", sum("Rss:", 0, "[stack]"));
	say("small", small);
	say("large", resident(large, 8 << 20));
	say("untouched", resident(untouched, 1 << 30));
	say("mapped", resident(mapped, 1000 * PAGE));
	say("file", sum("Rss:", (uintptr_t)of_file, NULL));
	say("shared", sum("Rss:", (uintptr_t)shared, NULL));
}

static void quiet(const char *path)
{
	untouched_block();
	small_blocks();
	large_block();
	map_some();
	map_shared();
	map_file(path);
	start_thread();
	free_most();
	report();
}

/* A child that writes to some of the pages that it inherits. */
static void forked(void)
{
	large_block();
	map_some();
	if (!fork()) {
		touch(large, 321);
		touch(mapped, 45);
		exit(0);
	}
	wait(NULL);
}

/* Children that share memory, and the pages that they have touched. */
static void sharing(void)
{
	int ends[2], done[2], n = 0;
	char none;

	if (pipe(ends) || pipe(done))
		_exit(9);
	map_shared();
	touch(shared, 1000);
	for (int i = 0; i < 3; i++) {
		if (fork())
			continue;
		close(ends[1]);
		touch(shared, 1000);
		if (write(done[1], "x", 1) != 1)
			_exit(9);
		exit(read(ends[0], &none, 1) != 0);
	}
	close(ends[0]);
	while (n < 3 && read(done[0], &none, 1) == 1)
		n++;
	close(ends[1]);
	for (int status; wait(&status) > 0;)
		;
}

static void killed(void)
{
	for (int i = 0; i < 64; i++)
		memset(malloc(1 << 20), 1, 1 << 20);
	say("grown", 64 << 20);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	maps = open("/proc/self/smaps", O_RDONLY);
	pages = open("/proc/self/pagemap", O_RDONLY);
	touch(text, sizeof(text) / PAGE);
	if (argc > 2)
		quiet(argv[2]);
	else if (!strcmp(argv[1], "forked"))
		forked();
	else if (!strcmp(argv[1], "sharing"))
		sharing();
	else
		killed();
	return 0;
}
