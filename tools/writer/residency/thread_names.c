/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/thread_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/writer/input/process_info.h"

/*
 * proc_pid_syscall(5): "0 0x1 ... SP PC" of a thread in a system call, "-1 SP PC" of another one
 * that doesn't run, else "running".
 */
static uint64_t stack_pointer_of(pid_t pid, pid_t tid)
{
	char path[64], text[256], *last, *before;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	last = strrchr(text, ' ');
	if (!last)
		return 0;
	*last = '\0';
	before = strrchr(text, ' ');
	return before ? strtoull(before, NULL, 16) : 0;
}

void torsh_thread_names_read(struct thread_names *threads, pid_t pid)
{
	char path[64];
	struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	folder = opendir(path);
	while (folder && threads->n < THREADS_NAMED_MAX && (entry = readdir(folder))) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		struct named_thread thread = {0};

		if (tid <= 0)
			continue;
		thread.stack_pointer = stack_pointer_of(pid, tid);
		torsh_process_thread_name(pid, tid, thread.name, sizeof(thread.name));
		threads->items = torsh_array_reserve(threads->items, threads->n, &threads->capacity,
						     sizeof(*threads->items));
		threads->items[threads->n++] = thread;
	}
	if (folder)
		closedir(folder);
}

const char *torsh_thread_names_find(const struct thread_names *threads, uint64_t begin,
				    uint64_t end)
{
	for (uint32_t i = 0; i < threads->n; i++) {
		if (threads->items[i].stack_pointer >= begin &&
		    threads->items[i].stack_pointer < end)
			return threads->items[i].name;
	}
	return NULL;
}

void torsh_thread_names_free(struct thread_names *threads)
{
	free(threads->items);
	*threads = (struct thread_names){0};
}
