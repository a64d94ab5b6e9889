/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether a program computes the same after a change: its exit status, the values that it records
 * itself (torsh.scalar, torsh.h, NVTX, ITT), and files of what it printed. A value is equal if it
 * lies within the range of the runs before, widened by the tolerance. Nothing is guessed: without
 * values and files it is not known.
 */
#ifndef TORSH_REPORT_VALIDATE_RESULTS_H
#define TORSH_REPORT_VALIDATE_RESULTS_H

#include "tools/ops/regions.h"

#define RESULTS_TOLERANCE 1e-3 /* ours: another order of sums in float32 changes less */
#define RESULTS_ROWS_MAX 1000u
#define RESULT_NUMBERS 5u /* first, last, least, largest, mean */

enum results_verdict { RESULTS_EQUAL, RESULTS_DIFFERENT, RESULTS_NOT_KNOWN };

extern const char *const torsh_results_verdict_names[];

/* A value over the runs of a side. */
struct result_side {
	size_t n_runs; /* that have it */
	uint64_t n_least, n_most; /* how often a run recorded it */
	double least[RESULT_NUMBERS], most[RESULT_NUMBERS];
	double last; /* of the first run */
};

struct result_row {
	char *name;
	struct result_side before, after;
	enum results_verdict verdict;
	double difference; /* relative, beyond the range before; NAN: not comparable */
};

/* What a program printed, before and after. */
struct result_text {
	const char *before, *after; /* files; NULL: none were given */
	uint64_t n_numbers; /* compared */
	double difference; /* the largest one, relative */
	uint64_t line; /* of the first difference, from 1; 0: there is none */
};

struct results {
	/* Set before. */
	double tolerance;
	const char **names; /* of the values that count; all if there are none */
	size_t n_names, names_room;
	struct result_text text;

	size_t n_runs_before, n_runs_after;
	struct result_row *rows;
	size_t n, n_room;
	bool has_status_before, has_status_after, status_varies;
	int status_before, status_after;
	enum results_verdict verdict;
	const char *reason; /* why it is not known, or what differs; NULL: equal */
};

/* Add what a run recorded; is_after: it is one of those after. */
void torsh_results_add(struct results *results, const struct recording *recording,
		       const struct prepass *prepass, const struct recorded_process *main,
		       bool is_after);

/* Compare, once all are added. Ends the program if a file can't be read. */
void torsh_results_judge(struct results *results);

/* Compare two texts number by number; sets all but the names of the files. */
void torsh_results_compare(struct result_text *result, const char *before, const char *after,
			   double tolerance);

/* Free the rows. */
void torsh_results_free(struct results *results);

#endif
