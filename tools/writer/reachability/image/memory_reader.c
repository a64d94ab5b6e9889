/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/image/memory_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/memory.h"

/* An entry of /proc/PID/pagemap. */
#define PAGE_IS_OF_FILE (UINT64_C(1) << 61) /* or shared */
#define PAGE_IS_SWAPPED (UINT64_C(1) << 62)
#define PAGE_IS_PRESENT (UINT64_C(1) << 63)
#define N_ENTRIES 4096u

#define CACHED_BYTES 4096u /* a page, or a part of one */
#define N_CACHED 512u

struct page_cache {
	uint64_t numbers[N_CACHED]; /* of pages, from 1 on; 0: none */
	unsigned char pages[N_CACHED][CACHED_BYTES];
};

static int open_file(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int torsh_memory_reader_open(struct memory_reader *reader, pid_t pid)
{
	*reader = (struct memory_reader){
		.memory_fd = open_file(pid, "mem"),
		.pages_fd = open_file(pid, "pagemap"),
		.pid = pid,
		.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
		.words = torsh_memory_new(READER_WORDS, sizeof(*reader->words)),
		.cache = torsh_memory_new(1, sizeof(*reader->cache)),
	};
	if (reader->memory_fd >= 0 && reader->pages_fd >= 0)
		return 0;
	int result = reader->memory_fd < 0 ? reader->memory_fd : reader->pages_fd;

	torsh_memory_reader_close(reader);
	return result;
}

void torsh_memory_reader_close(struct memory_reader *reader)
{
	if (reader->memory_fd >= 0)
		close(reader->memory_fd);
	if (reader->pages_fd >= 0)
		close(reader->pages_fd);
	free(reader->words);
	free(reader->cache);
	*reader = (struct memory_reader){.memory_fd = -1, .pages_fd = -1};
}

/*
 * Not by process_vm_readv, which pins the pages: since Linux 5.19 that gives the process copies of
 * those that it shares with one that it was forked from, or has forked.
 */
static ssize_t read_words(const struct memory_reader *reader, uint64_t at, size_t n)
{
	return pread(reader->memory_fd, reader->words, n, (off_t)at);
}

/* Pass what is in these pages. */
static int read_run(struct memory_reader *reader, uint64_t begin, uint64_t end, take_words *take,
		    void *context)
{
	while (begin < end) {
		size_t n = end - begin < READER_WORDS * sizeof(uint64_t)
				   ? end - begin
				   : READER_WORDS * sizeof(uint64_t);
		ssize_t got = read_words(reader, begin, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			return -ESRCH;
		/* an area that can't be read, or its first page */
		if (got < (ssize_t)sizeof(uint64_t)) {
			begin = (begin / reader->page_bytes + 1) * reader->page_bytes;
			continue;
		}
		reader->n_bytes += (uint64_t)got;
		got -= got % (ssize_t)sizeof(uint64_t);
		take(context, begin, reader->words, (size_t)got / sizeof(uint64_t));
		begin += (uint64_t)got;
	}
	return 0;
}

static bool is_wanted(uint64_t entry, bool is_of_file)
{
	return (entry & (PAGE_IS_PRESENT | PAGE_IS_SWAPPED)) &&
	       !(is_of_file && (entry & PAGE_IS_OF_FILE));
}

int torsh_memory_read(struct memory_reader *reader, uint64_t begin, uint64_t end, bool is_of_file,
		      take_words *take, void *context)
{
	uint64_t entries[N_ENTRIES], size = reader->page_bytes, run = 0, page;
	int result = 0;

	begin = (begin + 7) & ~UINT64_C(7);
	end &= ~UINT64_C(7);
	page = begin / size;
	while (!result && page * size < end) {
		uint64_t n_pages = (end + size - 1) / size - page;
		size_t n = n_pages < N_ENTRIES ? n_pages : N_ENTRIES;
		ssize_t got = pread(reader->pages_fd, entries, n * sizeof(*entries),
				    (off_t)(page * sizeof(*entries)));

		if (got <= 0)
			return got < 0 && errno == EINTR ? 0 : -ESRCH;
		n = (size_t)got / sizeof(*entries);
		for (size_t i = 0; !result && i < n; i++, page++) {
			uint64_t at = page * size;

			if (is_wanted(entries[i], is_of_file)) {
				run = run ? run : (at > begin ? at : begin);
			} else if (run) {
				result = read_run(reader, run, at, take, context);
				run = 0;
			}
		}
	}
	return run && !result ? read_run(reader, run, end, take, context) : result;
}

/* ---- few bytes ------------------------------------------------------------------------------- */

/* A system call takes as long for a page as for a word. */
static const unsigned char *page_at(const struct memory_reader *reader, uint64_t address)
{
	struct page_cache *cache = reader->cache;
	uint64_t number = address / CACHED_BYTES;
	size_t slot = number % N_CACHED;

	if (cache->numbers[slot] == number + 1)
		return cache->pages[slot];
	cache->numbers[slot] = 0;
	if (pread(reader->memory_fd, cache->pages[slot], CACHED_BYTES,
		  (off_t)(number * CACHED_BYTES)) != CACHED_BYTES)
		return NULL;
	cache->numbers[slot] = number + 1;
	return cache->pages[slot];
}

size_t torsh_memory_copy(const struct memory_reader *reader, uint64_t address, void *bytes,
			 size_t n)
{
	size_t at = 0;

	while (at < n) {
		size_t offset = (address + at) % CACHED_BYTES;
		size_t part = CACHED_BYTES - offset < n - at ? CACHED_BYTES - offset : n - at;
		const unsigned char *page = page_at(reader, address + at);

		if (!page)
			break;
		memcpy((char *)bytes + at, page + offset, part);
		at += part;
	}
	return at;
}

uint64_t torsh_memory_word(const struct memory_reader *reader, uint64_t address)
{
	uint64_t word;

	return torsh_memory_copy(reader, address, &word, sizeof(word)) == sizeof(word) ? word : 0;
}
