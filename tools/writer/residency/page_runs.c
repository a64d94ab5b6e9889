/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/page_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/base/containers/array.h"

/* An entry of /proc/PID/pagemap. */
#define PAGE_IS_EXCLUSIVE (UINT64_C(1) << 56) /* mapped once */
#define PAGE_IS_OF_FILE (UINT64_C(1) << 61) /* or shared */
#define PAGE_IS_PRESENT (UINT64_C(1) << 63)
#define N_ENTRIES 4096u

static void add_page(struct page_runs *runs, uint32_t first, uint64_t address, uint64_t page_bytes,
		     bool is_shared)
{
	struct page_run *last = runs->n > first ? &runs->items[runs->n - 1] : NULL;

	if (last && last->end == address && last->is_shared == is_shared) {
		last->end += page_bytes;
		return;
	}
	runs->items =
		torsh_array_reserve(runs->items, runs->n, &runs->capacity, sizeof(*runs->items));
	runs->items[runs->n++] = (struct page_run){address, address + page_bytes, is_shared};
}

int torsh_page_runs_read(struct page_runs *runs, int pagemap_fd, uint64_t begin, uint64_t end,
			 uint64_t page_bytes)
{
	uint64_t entries[N_ENTRIES], at = begin;
	uint32_t first = runs->n;

	while (at < end) {
		uint64_t n_pages = (end - at) / page_bytes;
		size_t n = n_pages < N_ENTRIES ? n_pages : N_ENTRIES;
		ssize_t got = pread(pagemap_fd, entries, n * sizeof(*entries),
				    (off_t)(at / page_bytes * sizeof(*entries)));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -ESRCH;
		n = (size_t)got / sizeof(*entries);
		for (size_t i = 0; i < n; i++, at += page_bytes) {
			if (entries[i] & PAGE_IS_PRESENT && !(entries[i] & PAGE_IS_OF_FILE))
				add_page(runs, first, at, page_bytes,
					 !(entries[i] & PAGE_IS_EXCLUSIVE));
		}
	}
	return 0;
}

static uint64_t bytes_of(const struct page_runs *runs, uint32_t first)
{
	uint64_t bytes = 0;

	for (uint32_t i = first; i < runs->n; i++)
		bytes += runs->items[i].end - runs->items[i].begin;
	return bytes;
}

/* Cut so many bytes off the ends of runs, from the last one on. Returns what is left to cut. */
static uint64_t cut(struct page_runs *runs, uint32_t first, uint64_t bytes, bool only_shared)
{
	uint32_t kept = first;

	for (uint32_t i = runs->n; bytes && i-- > first;) {
		struct page_run *run = &runs->items[i];
		uint64_t size = run->end - run->begin, gone = size < bytes ? size : bytes;

		if (only_shared && !run->is_shared)
			continue;
		run->end -= gone;
		bytes -= gone;
	}
	for (uint32_t i = first; i < runs->n; i++) {
		if (runs->items[i].end > runs->items[i].begin)
			runs->items[kept++] = runs->items[i];
	}
	runs->n = kept;
	return bytes;
}

uint64_t torsh_page_runs_limit(struct page_runs *runs, uint32_t first, uint64_t bytes)
{
	uint64_t is = bytes_of(runs, first);

	if (is <= bytes)
		return is;
	cut(runs, first, cut(runs, first, is - bytes, true), false);
	return bytes;
}

uint32_t torsh_page_runs_from(const struct page_runs *runs, uint64_t address)
{
	uint32_t from = 0, to = runs->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (runs->items[middle].end <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void torsh_page_runs_free(struct page_runs *runs)
{
	free(runs->items);
	*runs = (struct page_runs){0};
}
