/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The sites of one process, one after another: from a list, or made of the rows of the recording
 * when they are asked for. At the peak of a program that imports PyTorch half a million stacks hold
 * memory, and a few hundred of them are shown.
 */
#ifndef TORSH_MEMORY_SITE_READER_H
#define TORSH_MEMORY_SITE_READER_H

#include "tools/memory/allocation_sites.h"

/* A row of the recording, with what decides most often. */
struct site_row {
	uint32_t row;
	uint32_t few_blocks : 31; /* the highest number stands for more, too */
	uint32_t has_steps : 1;
};

/* How rows of a process become sites. */
struct site_row_kind {
	struct allocation_site (*site)(const struct recorded_process *process, size_t row);
	uint32_t (*stack)(const struct recorded_process *process, size_t row); /* of that site */
};

struct site_reader {
	size_t n;
	const struct allocation_site *sites; /* NULL: they are rows */
	const struct recorded_process *process;
	const struct site_row_kind *kind;
	struct site_row *rows;
};

/* Read the n sites of a list, which stays the caller's. */
struct site_reader torsh_site_reader_of(const struct allocation_site *sites, size_t n);

/*
 * Read the sites of rows below n_rows that are not empty. kind outlives the reader; the caller ends
 * it.
 */
struct site_reader torsh_site_reader_of_rows(const struct recorded_process *process,
					     const struct site_row_kind *kind, size_t n_rows);

/* Read the sites of a process at its peak, as SITES_PEAK. The caller ends it. */
struct site_reader torsh_site_reader_at_peak(const struct recorded_process *process);

/* Free what it holds. */
void torsh_site_reader_end(struct site_reader *reader);

/* Returns site number i. */
struct allocation_site torsh_site_reader_at(const struct site_reader *reader, size_t i);

/*
 * Returns the blocks of site number i, or fewer if they are more than 2^31: cheaper than all of it.
 */
uint64_t torsh_site_reader_few_blocks(const struct site_reader *reader, size_t i);

/* Returns whether site number i may have steps: cheaper likewise. */
bool torsh_site_reader_has_steps(const struct site_reader *reader, size_t i);

/* Returns the stack of site number i: cheaper likewise. */
uint32_t torsh_site_reader_stack(const struct site_reader *reader, size_t i);

#endif
