/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory for tables. Without memory the tools can't go on: these functions end the process with a
 * sentence, and the writer's recording keeps what its last checkpoint wrote.
 */
#ifndef TORSH_BASE_MEMORY_H
#define TORSH_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/*
 * The writer's start, before anything else is allocated: large blocks get pages of their own, which
 * come zeroed and grow without a copy.
 */
void torsh_memory_start(void);

/* n items of n_bytes each, zeroed; never NULL. What is not touched costs nothing. */
void *torsh_memory_new(size_t n, size_t n_bytes);

/* n_bytes, not initialised; never NULL. */
void *torsh_memory_alloc(size_t n_bytes);

/*
 * The same for a table that is looked into at random and filled soon: in huge pages, where there
 * are any.
 */
void *torsh_memory_table(size_t n, size_t n_bytes);

/* The same for a small one whose items share cache lines: it begins with one. */
void *torsh_memory_lines(size_t n, size_t n_bytes);

/*
 * Zeroed memory of its own, n_bytes of it, which is a multiple of 2 MiB and begins at one: in huge
 * pages, where there are any. What is not touched costs nothing, so that a table can grow in it.
 */
void *torsh_memory_region(size_t n_bytes);

/*
 * The same in pages of the usual size, for what is to take no more than n_bytes;
 * torsh_memory_region_free frees it.
 */
void *torsh_memory_pages(size_t n_bytes);

/* Give the pages of a region back: they read as zeroes again, and cost nothing. */
void torsh_memory_region_empty(void *start, size_t n_bytes);

/* Unmap a region or pages of n_bytes. */
void torsh_memory_region_free(void *region, size_t n_bytes);

/*
 * p, or the end of the process when it is NULL: the writer's with status 1, at once; a command's
 * as torsh_die.
 */
void *torsh_memory_or_die(void *p);

/*
 * Put a large table into huge pages. It is looked into at random: with small pages that costs a
 * walk through the page tables each time.
 */
void torsh_memory_advise(void *items, size_t n_bytes);

/* A copy that the caller frees. */
char *torsh_memory_text(const char *text);

#endif
