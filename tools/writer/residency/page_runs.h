/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which pages of another process's area are its own and in memory: /proc/PID/pagemap. */
#ifndef TORSH_WRITER_RESIDENCY_PAGE_RUNS_H
#define TORSH_WRITER_RESIDENCY_PAGE_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pages beside each other with the same use. */
struct page_run {
	uint64_t begin, end;
	bool is_shared; /* with another process, or the kernel's page of zeros */
};

struct page_runs {
	struct page_run *items;
	uint32_t n;
	size_t capacity;
};

/*
 * Add the anonymous pages from begin to end that are in memory, as runs of their own. Returns 0 or
 * -errno.
 */
int torsh_page_runs_read(struct page_runs *runs, int pagemap_fd, uint64_t begin, uint64_t end,
			 uint64_t page_bytes);

/*
 * Remove pages of the runs from number first on until no more than so many bytes are left: shared
 * ones before others, because pages of zeros are no part of the resident set, and can't be told
 * from them. Returns the bytes that are left.
 */
uint64_t torsh_page_runs_limit(struct page_runs *runs, uint32_t first, uint64_t bytes);

/* Returns the number of the first run that ends behind the address; n if there is none. */
uint32_t torsh_page_runs_from(const struct page_runs *runs, uint64_t address);

/* Free the list. */
void torsh_page_runs_free(struct page_runs *runs);

#endif
