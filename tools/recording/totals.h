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
