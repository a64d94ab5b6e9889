/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory for tables. The tools cannot work without memory: on failure these functions end the
 * process with a message, and the writer's recording keeps its last checkpoint.
 */
#ifndef TORSH_BASE_MEMORY_H
#define TORSH_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Called by a program before anything else is allocated: gives large blocks their own pages, which
 * are zeroed, grow without a copy, and are the kernel's again when freed. is_in_writer: how it
 * ends without memory.
 */
void torsh_memory_start(bool is_in_writer);

/* Returns n items of n_bytes each, zeroed; never NULL. Untouched pages use no memory. */
void *torsh_memory_new(size_t n, size_t n_bytes);

/* Returns n_bytes, not initialised; never NULL. */
void *torsh_memory_alloc(size_t n_bytes);

/* Likewise, for a table with random access that fills soon: uses huge pages if there are any. */
void *torsh_memory_table(size_t n, size_t n_bytes);

/* Likewise, aligned to a cache line, for a small table with items that share cache lines. */
void *torsh_memory_lines(size_t n, size_t n_bytes);

/*
 * Returns a zeroed region of n_bytes, a multiple of 2 MiB, aligned to 2 MiB: uses huge pages if
 * there are any. Untouched pages use no memory, so a table can grow in it.
 */
void *torsh_memory_region(size_t n_bytes);

/*
 * Likewise of any size, with pages of the usual size, so that it uses at most n_bytes. Free it with
 * torsh_memory_region_free.
 */
void *torsh_memory_pages(size_t n_bytes);

/*
 * Move the first n_bytes of what torsh_memory_pages returned, all of them in use, to huge pages as
 * far as they fill them: under a hypervisor a miss of the TLB costs more than one of the cache.
 */
void torsh_memory_collapse(void *start, size_t n_bytes);

/* Return the pages of a region to the kernel: they read as zeroes again. */
void torsh_memory_region_empty(void *start, size_t n_bytes);

/* Unmap a region or pages of n_bytes. */
void torsh_memory_region_free(void *region, size_t n_bytes);

/*
 * Returns p. Ends the process if it is NULL: the writer at once with status 1, a command like
 * torsh_die.
 */
void *torsh_memory_or_die(void *p);

/*
 * Put a large table into huge pages: with small pages each random access costs a walk through the
 * page tables.
 */
void torsh_memory_advise(void *items, size_t n_bytes);

/* Give the kernel what was freed, after a lot was: the C library keeps it between what is used. */
void torsh_memory_trim(void);

/* Returns a copy that the caller frees. */
char *torsh_memory_text(const char *text);

#endif
