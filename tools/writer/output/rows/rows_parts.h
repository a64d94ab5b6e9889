/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The parts of rows.h: each noun's messages are in a file of their own. Tables append their own
 * chunks, a batch of rows at a time; totals are put into messages that rows_chunks.c appends, so
 * that they belong to one moment.
 */
#ifndef TORSH_WRITER_OUTPUT_ROWS_ROWS_PARTS_H
#define TORSH_WRITER_OUTPUT_ROWS_ROWS_PARTS_H

#include <stdbool.h>

#include "tools/writer/output/rows/rows.h"

/* Rows of one message: a chunk has its limits. */
#define ROWS_BATCH (1u << 19)
#define ROWS_TOTALS (1u << 17) /* of those in one chunk with other totals; see rows_chunks.c */
#define ROWS_THREADS (1u << 16) /* likewise */
#define ROWS_PARTS_MAX 8u

/* Memory of messages under construction: columns, freed together. */
struct rows_memory {
	void **blocks;
	uint32_t n_blocks, capacity;
};

/* The block, from malloc, becomes the memory's. Returns it. */
void *torsh_rows_keep(struct rows_memory *memory, void *block);

/* n zeroed items of n_bytes each, which are freed with the memory. */
void *torsh_rows_memory(struct rows_memory *memory, size_t n, size_t n_bytes);

/* Free all of it; the memory can be used again. */
void torsh_rows_free(struct rows_memory *memory);

/* Set an optional field of a message. */
#define ROWS_SET(row, field, value) ((row)->has_##field = 1, (row)->field = (value))

/* A column of a message: n values that the caller fills in. */
#define ROWS_COLUMN(memory, row, field, n) \
	((row)->n_##field = (n),           \
	 (row)->field = torsh_rows_memory(memory, (n), sizeof(*(row)->field)))

/* All of a Process row. */
void torsh_rows_put_process(Torsh__Process *row, struct rows_memory *memory,
			    const struct target *target);

/* Behind the program and the notes; may add a note. */
void torsh_rows_put_lsan(Torsh__Process *row, const struct target *target);

/* What the recording lacks of the process. */
void torsh_rows_put_losses(Torsh__Process *row, struct rows_memory *memory,
			   const struct target *target);

/* How a process ended, in the form of wait(); returns false when status is -1: not known. */
bool torsh_rows_put_wait_status(Torsh__Process *row, int status);

/* New modules, functions, addresses and stacks. */
void torsh_rows_append_tables(struct recording_file *file, struct target *target,
			      enum recording_priority priority);

/* The columns of n modules from number first on. */
void torsh_rows_make_modules(Torsh__Modules *row, struct rows_memory *memory, uint32_t first,
			     uint32_t n);

/* Row i of these modules; its texts stay the module's. */
void torsh_rows_set_module(Torsh__Modules *row, uint32_t i, const struct code_module *module);

/* The columns of n functions from number first on. */
void torsh_rows_make_functions(Torsh__Functions *row, struct rows_memory *memory, uint32_t first,
			       uint32_t n);

/* Row i of these functions; its texts stay the function's. */
void torsh_rows_set_function(Torsh__Functions *row, uint32_t i,
			     const struct code_function *function);

/* All totals, as they are now; where not all could be written target->rows->has_missed is set. */
void torsh_rows_append_totals(struct recording_file *file, struct target *target,
			      enum recording_priority priority);

/* The columns of n rows, all 0. */
void torsh_rows_make_totals(Torsh__StackTotals *row, struct rows_memory *memory, uint32_t n);

/*
 * Sites that changed, at most ROWS_TOTALS of them from *site on; returns false when there is none.
 */
bool torsh_rows_put_stack_totals(Torsh__StackTotals *row, struct rows_memory *memory,
				 const struct target *target, uint32_t *site);

/* All of a Heap row. */
void torsh_rows_put_heap(Torsh__Heap *row, struct rows_memory *memory, const struct target *target);

/* Blocks that survived steps, by site. */
struct growth_sum;

/* Sum up the survivors of the steps by site, for the caller to free. NULL: no step was marked. */
struct growth_sum *torsh_rows_sum_growth(const struct target *target);

/*
 * Sites that have survivors, at most ROWS_TOTALS of them from *site on; *site is n_sites when all
 * were put.
 */
void torsh_rows_put_growth(Torsh__Growth *row, struct rows_memory *memory,
			   const struct target *target, const struct growth_sum *sum,
			   uint32_t *site);

/* Live blocks by site. */
struct live_sum;

/* Sum up the live blocks by site, for the caller to free. */
struct live_sum *torsh_rows_sum_live(const struct target *target);

/*
 * Those of at most ROWS_TOTALS sites that have any, from *site on; *site is n_sites when all were
 * put.
 */
void torsh_rows_put_live(Torsh__Live *row, struct rows_memory *memory, const struct target *target,
			 const struct live_sum *sums, uint32_t *site);

/* At most ROWS_TOTALS sites from *site on, which moves past the last one. */
void torsh_rows_put_mappings(Torsh__Mappings *row, struct rows_memory *memory,
			     const struct target *target, uint32_t *site);

/*
 * What ring consumers know of threads that still run becomes part of their rows; those that it
 * changes are marked so.
 */
void torsh_rows_refresh_threads(struct target *target);

/*
 * Threads that changed, at most ROWS_THREADS of them from *next on, which moves past the last one.
 */
void torsh_rows_put_threads(Torsh__Threads *row, struct rows_memory *memory,
			    const struct target *target, uint32_t *next);

/* All of a Series row. */
void torsh_rows_put_series(Torsh__Series *row, struct rows_memory *memory,
			   const struct target *target);

#endif
