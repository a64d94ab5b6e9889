/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Where the threads of another process have their stacks, as far as the kernel shows it. */
#ifndef TORSH_WRITER_RESIDENCY_THREAD_NAMES_H
#define TORSH_WRITER_RESIDENCY_THREAD_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct named_thread {
	uint64_t stack_pointer; /* 0: not known, because it runs */
	char name[16];
};

struct thread_names {
	struct named_thread *items;
	uint32_t n;
	size_t capacity;
};

/* Read them, at most THREADS_NAMED_MAX. */
#define THREADS_NAMED_MAX 4096u
void torsh_thread_names_read(struct thread_names *threads, pid_t pid);

/* Returns the name of a thread whose stack pointer is from begin to end; NULL: there is none. */
const char *torsh_thread_names_find(const struct thread_names *threads, uint64_t begin,
				    uint64_t end);

/* Free the list. */
void torsh_thread_names_free(struct thread_names *threads);

#endif
