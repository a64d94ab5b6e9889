/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The shared tables of a fold, and their columns: C(TABLE, name, how two values become one).
 * Numbers are part of the format: add at the end.
 */
#ifndef TORSH_RANKS_FOLD_FOLD_TABLES_H
#define TORSH_RANKS_FOLD_FOLD_TABLES_H

/* TABLE(NAME) */
#define FOLD_TABLES(TABLE) \
	TABLE(SPANS)       \
	TABLE(DURATIONS)   \
	TABLE(MEMORY)      \
	TABLE(COLLECTIVES) \
	TABLE(FINDINGS)

/* Spans by node. sub: 0 outside of all steps, else the step's bucket and 1. */
#define FOLD_COLUMNS_OF_SPANS(C) \
	C(SPANS, count, SUM)     \
	C(SPANS, sum_ns, SUM)    \
	C(SPANS, self_ns, SUM)   \
	C(SPANS, min_ns, MIN)    \
	C(SPANS, max_ns, MAX)

/* Their durations. sub: bucket of sketch.h. */
#define FOLD_COLUMNS_OF_DURATIONS(C) C(DURATIONS, count, SUM)

/* Who held the heap at its peak. sub: as of SPANS, of the last block. */
#define FOLD_COLUMNS_OF_MEMORY(C)   \
	C(MEMORY, ranks, SUM)       \
	C(MEMORY, peak_blocks, SUM) \
	C(MEMORY, peak_bytes, SUM)  \
	C(MEMORY, most_bytes, MAX)

/* Collectives by name and group. sub: 0 without bytes, else floor(log2(bytes)) and 1. */
#define FOLD_COLUMNS_OF_COLLECTIVES(C)  \
	C(COLLECTIVES, calls, SUM)      \
	C(COLLECTIVES, bytes, SUM)      \
	C(COLLECTIVES, total_ns, SUM)   \
	C(COLLECTIVES, exposed_ns, SUM) \
	C(COLLECTIVES, min_ns, MIN)     \
	C(COLLECTIVES, max_ns, MAX)     \
	C(COLLECTIVES, group_size, MAX)

/* Findings by rule. sub: severity. */
#define FOLD_COLUMNS_OF_FINDINGS(C) \
	C(FINDINGS, ranks, SUM)     \
	C(FINDINGS, findings, SUM)  \
	C(FINDINGS, most_ppm, MAX)

#endif
