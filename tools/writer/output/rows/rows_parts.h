/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The parts of rows.h: each kind of message has a file of its own. Tables append their own chunks,
 * a batch of rows at a time; totals are put into messages that rows_chunks.c appends, so that they
 * belong to one moment.
 */
#ifndef TORSH_WRITER_OUTPUT_ROWS_ROWS_PARTS_H
#define TORSH_WRITER_OUTPUT_ROWS_ROWS_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/writer/output/rows/rows.h"

/* Rows per message, because chunks have limits. */
#define ROWS_BATCH (1u << 19)
#define ROWS_TOTALS (1u << 17) /* rows that share a chunk with other totals; see rows_chunks.c */
#define ROWS_THREADS (1u << 16) /* likewise */
#define ROWS_GROUPS (1u << 14) /* groups of live blocks in all, and of a site */
#define ROWS_GROUPS_OF_SITE 512u
#define ROWS_PARTS_MAX 8u

/* Memory of messages under construction: columns, freed together. */
struct rows_memory {
	void **blocks;
	uint32_t n_blocks;
	size_t capacity;
};

/* Take ownership of a block from malloc. Returns it. */
void *torsh_rows_keep(struct rows_memory *memory, void *block);

/* Allocate n zeroed items of n_bytes each, which are freed with the memory. */
void *torsh_rows_memory(struct rows_memory *memory, size_t n, size_t n_bytes);

/* Free all blocks; the memory can be used again. */
void torsh_rows_free(struct rows_memory *memory);

/* Set an optional field of a message. */
#define ROWS_SET(row, field, value) ((row)->has_##field = 1, (row)->field = (value))

/* Allocate a column of n values, which the caller fills in. */
#define ROWS_COLUMN(memory, row, field, n) \
	((row)->n_##field = (n),           \
	 (row)->field = torsh_rows_memory(memory, (n), sizeof(*(row)->field)))

/* Put all fields of a Process row. */
void torsh_rows_put_process(Torsh__Process *row, struct rows_memory *memory,
			    const struct target *target);

/* Call after the rank is set: torch.distributed's replaces the launcher's. */
void torsh_rows_put_identity(Torsh__Process *row, struct rows_memory *memory,
			     const struct target *target);

/* Call after the program and the notes are set; may add a note. */
void torsh_rows_put_lsan(Torsh__Process *row, const struct target *target);

/* What the recording lacks of the process. */
void torsh_rows_put_losses(Torsh__Process *row, struct rows_memory *memory,
			   const struct target *target);

/* Set how a process ended, as wait() reports it; returns false if status is -1: unknown. */
bool torsh_rows_put_wait_status(Torsh__Process *row, int status);

/*
 * Write the modules, functions, addresses and stacks that *written doesn't count yet, as the rows
 * of the process with that number.
 */
void torsh_rows_append_tables(struct recording_file *file, const struct program_tables *tables,
			      uint32_t process, struct tables_written *written,
			      enum recording_priority priority);

/* Write where the target has modules of tables that it shares, unless that is in the file. */
void torsh_rows_append_placements(struct recording_file *file, struct target *target,
				  enum recording_priority priority);

/* Allocate the columns of n modules from number first on. */
void torsh_rows_make_modules(Torsh__Modules *row, struct rows_memory *memory, uint32_t first,
			     uint32_t n);

/* Fill in row i of these modules; its texts stay the module's. */
void torsh_rows_set_module(Torsh__Modules *row, uint32_t i, const struct code_module *module);

/* Allocate the columns of n functions from number first on. */
void torsh_rows_make_functions(Torsh__Functions *row, struct rows_memory *memory, uint32_t first,
			       uint32_t n);

/* Fill in row i of these functions; its texts stay the function's. */
void torsh_rows_set_function(Torsh__Functions *row, uint32_t i,
			     const struct code_function *function);

/* Write all current totals; if not all could be written, target->rows->has_missed is set. */
void torsh_rows_append_totals(struct recording_file *file, struct target *target,
			      enum recording_priority priority);

/* Allocate the columns of n rows, zeroed. */
void torsh_rows_make_totals(Torsh__StackTotals *row, struct rows_memory *memory, uint32_t n);

/* Put changed sites, at most ROWS_TOTALS from *site on; returns false if there are none. */
bool torsh_rows_put_stack_totals(Torsh__StackTotals *row, struct rows_memory *memory,
				 const struct target *target, uint32_t *site);

/* Put all fields of a Heap row. */
void torsh_rows_put_heap(Torsh__Heap *row, struct rows_memory *memory, const struct target *target);

/* Blocks that survived steps, by site. */
struct growth_sum;

/* Sum up the survivors of the steps by site; the caller frees them. NULL: no step was marked. */
struct growth_sum *torsh_rows_sum_growth(const struct target *target);

/*
 * Put the sites with survivors, at most ROWS_TOTALS from *site on; *site is n_sites when all were
 * put.
 */
void torsh_rows_put_growth(Torsh__Growth *row, struct rows_memory *memory,
			   const struct target *target, const struct growth_sum *sum,
			   uint32_t *site);

/* Live blocks by site. */
struct live_sums;

/* Sum up the live blocks by site; torsh_rows_free_live frees the sums. */
struct live_sums *torsh_rows_sum_live(const struct target *target);

/* Free the sums. */
void torsh_rows_free_live(struct live_sums *sums);

/*
 * Put the live blocks of at most ROWS_TOTALS sites that have any, from *site on; *site is n_sites
 * when all were put.
 */
void torsh_rows_put_live(Torsh__Live *row, struct rows_memory *memory, const struct target *target,
			 const struct live_sums *sums, uint32_t *site);

/* Put at most ROWS_TOTALS sites from *site on, which moves past the last one. */
void torsh_rows_put_mappings(Torsh__Mappings *row, struct rows_memory *memory,
			     const struct target *target, uint32_t *site);

/*
 * Put changed moments, or pieces of one, with at most ROWS_TOTALS of their sites from *next on,
 * which begins as 0 and moves past the last one; returns false if none are left.
 */
bool torsh_rows_put_moments(Torsh__Moments *row, struct rows_memory *memory,
			    const struct target *target, uint64_t *next);

/*
 * Put at most ROWS_TOTALS sites of a window's peak, from number first on. Returns the number of the
 * next one.
 */
uint32_t torsh_rows_put_window_peak(Torsh__WindowPeak *row, struct rows_memory *memory,
				    const struct target *target, const struct window_peak *peak,
				    uint32_t first);

/* Write which live blocks can be reached, if that was judged or tried. */
void torsh_rows_append_verdicts(struct recording_file *file, const struct target *target,
				enum recording_priority priority);

/* Write the accounts of its resident memory; is_all: also those that are in the file. */
void torsh_rows_append_residency(struct recording_file *file, const struct target *target,
				 enum recording_priority priority, bool is_all);

/* Write its calls of BLAS and LAPACK; is_all likewise. */
void torsh_rows_append_library_calls(struct recording_file *file, struct target *target,
				     enum recording_priority priority, bool is_all);

/* Write its requests and tasks; is_all likewise. */
void torsh_rows_append_tasks(struct recording_file *file, struct target *target,
			     enum recording_priority priority, bool is_all);

/* Write the census of its small objects of Python; is_all likewise. */
void torsh_rows_append_census(struct recording_file *file, const struct target *target,
			      enum recording_priority priority, bool is_all);

/* Write what its threads waited for; is_all likewise. */
void torsh_rows_append_waits(struct recording_file *file, struct target *target,
			     enum recording_priority priority, bool is_all);

/*
 * Copy the ring consumers' current values of running threads into the thread rows; changed rows are
 * marked.
 */
void torsh_rows_refresh_threads(struct target *target);

/* Put changed threads, at most ROWS_THREADS from *next on, which moves past the last one. */
void torsh_rows_put_threads(Torsh__Threads *row, struct rows_memory *memory,
			    const struct target *target, uint32_t *next);

/* Put all fields of a CpuTime row. */
void torsh_rows_put_cpu_time(Torsh__CpuTime *row, struct rows_memory *memory,
			     const struct target *target);

/* Put all fields of a CpuSupply row. */
void torsh_rows_put_cpu_supply(Torsh__CpuSupply *row, struct rows_memory *memory,
			       const struct target *target);

/* Put all fields of a Series row. */
void torsh_rows_put_series(Torsh__Series *row, struct rows_memory *memory,
			   const struct target *target);

#endif
