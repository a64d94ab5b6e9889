/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The totals of a process by stack, packed: a program that imports PyTorch has a million of them,
 * and of their 150 bytes all but 15 are zeros. A row is found by its stack, or read in the order in
 * which stacks came.
 */
#ifndef TORSH_RECORDING_TOTALS_H
#define TORSH_RECORDING_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/row_index.h"
#include "tools/recording/estimate.h"
#include "tools/store/packed_columns.h"

#define TOTAL_NUMBERS 15u /* of a total: all but its variances */
#define TOTAL_ROW_BYTES 256u /* of 22 numbers of at most 10 bytes each */

/* The allocations of one stack, and its usage at the peak; see StackTotals. */
struct recorded_total {
	uint32_t stack;
	uint32_t seen;
	uint64_t allocs, alloc_bytes;
	uint64_t temporary, temporary_bytes;
	uint64_t base_blocks, base_bytes;
	int64_t delta_blocks, delta_bytes;
	/* of the estimates; 0: they are exact */
	struct estimate_variance alloc_variance, base_variance, live_variance;
	uint32_t operator, module; /* labels; 0: none, PROFILE_SEVERAL */
	/* numbers + 1; 0: in none */
	uint32_t first_step, last_step, base_first_step, base_last_step;
};

/* How often a stack allocated. */
struct allocation_count {
	uint32_t stack;
	uint64_t allocs;
};

struct recorded_totals {
	size_t n;
	uint32_t *offsets; /* of the rows in bytes */
	size_t offsets_room;
	uint8_t *bytes;
	size_t n_bytes, bytes_room;
	struct row_index row_of; /* by stack */
};

/* Returns true if the stack has a row. */
bool torsh_totals_has(const struct recorded_totals *totals, uint32_t stack);

/* Add or replace the row of total->stack. Returns false if the rows would exceed 4 GiB. */
bool torsh_totals_put(struct recorded_totals *totals, const struct recorded_total *total);

/* A row as it is stored. */
struct packed_total {
	uint32_t stack;
	uint32_t row; /* that the stack has; ROW_INDEX_NONE: it has none */
	size_t n_bytes;
	uint8_t bytes[TOTAL_ROW_BYTES];
};

/*
 * Pack a row of total->stack, without variances, from the next values of columns: of allocs,
 * alloc_bytes, base_blocks, base_bytes, delta_blocks, delta_bytes, seen, temporary,
 * temporary_bytes, operator, module, first_step, last_step, base_first_step, base_last_step.
 * present: those that have values, as bits; all others are 0.
 */
void torsh_totals_pack(struct packed_total *total, struct packed_column *columns, uint32_t present);

/* As torsh_totals_put, for a row that is packed. */
bool torsh_totals_put_packed(struct recorded_totals *totals, const struct packed_total *total);

/* Get row number i, below totals->n. */
struct recorded_total torsh_totals_at(const struct recorded_totals *totals, size_t i);

/* What few rows have: temporary blocks, a last step. */
enum total_part { TOTAL_TEMPORARY, TOTAL_STEPS };

/* Returns true if row number i has that part: cheaper than all of the row. */
bool torsh_totals_has_part(const struct recorded_totals *totals, size_t i, enum total_part part);

/* Get the stack and the allocations of row number i: cheaper than all of it. */
struct allocation_count torsh_totals_count(const struct recorded_totals *totals, size_t i);

/* Get the row of a stack. Returns false if there is none; then the row is empty. */
bool torsh_totals_find(const struct recorded_totals *totals, uint32_t stack,
		       struct recorded_total *total);

/* Free the rows. */
void torsh_totals_free(struct recorded_totals *totals);

#endif
