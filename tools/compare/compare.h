/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/compare compares two sets of runs of a program. Read this file first.
 *
 * Each run is measured once (measure.c) into tables with a row for each stack, operator, module,
 * kernel and user's line. Rows of stacks and lines are then matched between the two sets
 * (match.c), and each change is judged (change.h).
 */
#ifndef TORSH_COMPARE_COMPARE_H
#define TORSH_COMPARE_COMPARE_H

#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/intern.h"
#include "tools/compare/change.h"
#include "tools/compare/place.h"
#include "tools/memory/leaks/rules/suppress.h"
#include "tools/symbols/stack_view.h"
#include "tools/timeline/prepass/prepass.h"

/* TOTAL(name, unit, description) of a run. */
#define COMPARE_TOTALS                                          \
	TOTAL(leaked_bytes, BYTES, "leaked")                    \
	TOTAL(leaked_blocks, COUNT, "leaked blocks")            \
	TOTAL(peak_bytes, BYTES, "heap peak")                   \
	TOTAL(growth_bytes_per_step, BYTES, "growth, per step") \
	TOTAL(step_median_ns, NS, "step, median")

enum compare_total {
#define TOTAL(name, unit, text) COMPARE_##name,
	COMPARE_TOTALS
#undef TOTAL
		N_COMPARE_TOTALS
};

/* TABLE(NAME, name, unit of the first amount, its name, unit of the second, its name, heading) */
#define COMPARE_TABLES                                                                \
	TABLE(SITES, sites, BYTES, bytes, COUNT, blocks, "leaks")                     \
	TABLE(PEAK, peak, BYTES, bytes, COUNT, blocks, "held at the peak")            \
	TABLE(OPS, ops, NS, self_cpu_ns, FLOPS, self_flops_all, "operators")          \
	TABLE(MODULES, modules, NS, total_ns, FLOPS, flops_all, "modules")            \
	TABLE(KERNELS, kernels, NS, total_ns, COUNT, calls, "kernels")                \
	TABLE(LINES, lines, NS, self_cpu_ns, FLOPS, self_flops_all, "lines of yours") \
	TABLE(STACKS, stacks, NS, self_cpu_ns, FLOPS, self_flops_all, "operators by stack")

enum compare_table {
#define TABLE(NAME, name, unit, first, other_unit, second, text) COMPARE_##NAME,
	COMPARE_TABLES
#undef TABLE
		N_COMPARE_TABLES
};

enum compare_side { COMPARE_BEFORE, COMPARE_AFTER, N_COMPARE_SIDES };

#define COMPARE_AMOUNTS 2

/* STATUS(NAME, name), in the order of a report */
#define COMPARE_STATUSES       \
	STATUS(FIXED, fixed)   \
	STATUS(NEW, new)       \
	STATUS(WORSE, worse)   \
	STATUS(BETTER, better) \
	STATUS(SAME, same)

enum compare_status {
#define STATUS(NAME, name) STATUS_##NAME,
	COMPARE_STATUSES
#undef STATUS
		N_STATUSES
};

extern const char *const torsh_compare_status_names[N_STATUSES];

struct compare_row {
	const char *key; /* in by_key */
	const char *name; /* of rows without a place; NULL for stacks and lines */
	bool is_on[N_COMPARE_SIDES]; /* at least one run of that set has it */
	struct place places[N_COMPARE_SIDES]; /* of stacks and lines */
	bool is_moved; /* the user's line has another number or file */
	const char *renamed_from, *renamed_to; /* of functions; NULL: none was renamed */
	uint64_t *amounts[COMPARE_AMOUNTS]; /* by run, those before first */
	struct change changes[COMPARE_AMOUNTS];
	enum compare_status status; /* of the first amount */
};

struct compare_rows {
	struct compare_row *items;
	size_t n, n_room;
	struct hash_map by_key;
	size_t n_measured; /* runs that could record such rows */
};

struct comparison {
	size_t n_runs[N_COMPARE_SIDES];
	struct change_rules rules;
	struct {
		bool *is_known; /* by run */
		uint64_t *values;
		struct change change;
	} totals[N_COMPARE_TOTALS];
	struct compare_rows tables[N_COMPARE_TABLES];
	const char *programs[N_COMPARE_SIDES]; /* program of the set's first run */
	/* bytes: the highest of the set's runs; 0: every block was recorded */
	uint64_t sampled_every[N_COMPARE_SIDES];
	char **notes; /* sentences about what could not be compared */
	size_t n_notes, notes_room;
	struct intern texts;
};

/* A run to measure. Its symbols must outlive the comparison; the rest may go once measured. */
struct compare_run {
	const struct recording *recording;
	struct recorded_process *const *processes;
	size_t n_processes;
	struct symbols *symbols;
	enum stack_view view; /* of the stacks of leaks */
	struct suppress *suppress; /* counts are reset, and rules of programs removed again */
	const struct steps_choice *steps;
};

/* Begin a comparison of n_before and n_after runs. */
void torsh_comparison_begin(struct comparison *comparison, size_t n_before, size_t n_after,
			    const struct change_rules *rules);

/*
 * Measure run number run; those before come first. Ends the program if the recording cannot be
 * read.
 */
void torsh_comparison_measure(struct comparison *comparison, size_t run,
			      const struct compare_run *of);

/* Match and judge, once all runs are measured. Rows are sorted: the largest change first. */
void torsh_comparison_finish(struct comparison *comparison);

/* Free the comparison. */
void torsh_comparison_free(struct comparison *comparison);

/* ---- for the files of this folder ------------------------------------------------------------ */

/*
 * Returns the row of a table with that key on the run's side; a new one has no place and no name.
 */
struct compare_row *torsh_compare_row(struct comparison *comparison, enum compare_table table,
				      size_t run, const char *key);

/*
 * Returns the row of a place on the run's side, which takes the place: rows of one side are one if
 * their functions, files and user's lines are equal.
 */
struct compare_row *torsh_compare_place_row(struct comparison *comparison, enum compare_table table,
					    size_t run, struct place *place);

/* Merge the rows of stacks or lines that are the same place before and after. */
void torsh_compare_match(struct comparison *comparison, enum compare_table table);

/* If there are many rows, merge those with less than 0.1 % of the first amount in each run. */
void torsh_compare_fold_small(struct comparison *comparison, enum compare_table table);

/* Add a note; takes ownership of text. */
void torsh_compare_note(struct comparison *comparison, char *text);

#endif
