/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One process of a family: member FILE SIZE STATUS. It keeps a block of SIZE bytes, appends a line
 * to FILE, "PID PPID SIZE END", and ends with STATUS; "wait" waits to be killed instead.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile kept;

static void keep_in_member(size_t n_bytes)
{
	kept = malloc(n_bytes);
}

static void report(const char *path, size_t n_bytes, const char *end)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%d %d %zu %s\n", (int)getpid(), (int)getppid(),
			 n_bytes, end);
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0 || write(fd, line, (size_t)n) != n)
		_exit(99);
	close(fd);
}

int main(int argc, char **argv)
{
	size_t n_bytes;

	if (argc != 4)
		return 98;
	n_bytes = strtoul(argv[2], NULL, 10);
	keep_in_member(n_bytes);
	report(argv[1], n_bytes, argv[3]);
	while (!strcmp(argv[3], "wait"))
		pause();
	return atoi(argv[3]);
}
