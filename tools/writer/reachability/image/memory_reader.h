/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads the memory of another process: only pages that it has touched. */
#ifndef TORSH_WRITER_REACHABILITY_IMAGE_MEMORY_READER_H
#define TORSH_WRITER_REACHABILITY_IMAGE_MEMORY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define READER_WORDS (1u << 17) /* of the buffer: 1 MiB */

struct page_cache;

struct memory_reader {
	int memory_fd, pages_fd;
	pid_t pid;
	uint64_t page_bytes;
	uint64_t *words; /* READER_WORDS of them */
	uint64_t n_bytes; /* read so far, without what torsh_memory_copy reads */
	struct page_cache *cache;
};

/* Returns 0, or -errno with nothing to close: -EACCES or -EPERM if the system forbids it. */
int torsh_memory_reader_open(struct memory_reader *reader, pid_t pid);

/* Close it. */
void torsh_memory_reader_close(struct memory_reader *reader);

/* Words of the process in the reader's buffer, until the next call. */
typedef void take_words(void *context, uint64_t address, uint64_t *words, size_t n);

/*
 * Pass the words of the process from begin to end, which are rounded to whole words inside: all
 * pages that are in memory or swapped out; if is_of_file, only those that the process has changed.
 * What can't be read is left out. Returns 0, or -errno if the process is gone.
 */
int torsh_memory_read(struct memory_reader *reader, uint64_t begin, uint64_t end, bool is_of_file,
		      take_words *take, void *context);

/*
 * Copy n bytes. Returns how many could be read. Pages are kept: what the process changes after its
 * reader was opened may not be seen.
 */
size_t torsh_memory_copy(const struct memory_reader *reader, uint64_t address, void *bytes,
			 size_t n);

/* Read one word likewise; 0 if it can't be read. */
uint64_t torsh_memory_word(const struct memory_reader *reader, uint64_t address);

#endif
