/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One figure before and after, each from one run or from several. The value of several runs is
 * their median. A difference within the spread (spread.h) is no change.
 */
#ifndef TORSH_COMPARE_CHANGE_H
#define TORSH_COMPARE_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum change_unit { CHANGE_BYTES, CHANGE_COUNT, CHANGE_NS, CHANGE_FLOPS };

/* Differences below these are no change either. */
struct change_rules {
	uint64_t min_bytes;
	bool has_min_percent;
	/* If not set: CHANGE_PERCENT; for times depending on the number of runs. */
	double min_percent;
	/* Figures judged together, which share the chance of a false change; 0: 1. */
	size_t n_figures;
};

#define CHANGE_MIN_BYTES 1024u
#define CHANGE_PERCENT 1.0
#define CHANGE_TIME_PERCENT 10.0 /* two single runs of one program differ by less */
#define CHANGE_TIME_RUNS_PERCENT 2.0 /* of sets of CHANGE_RUNS runs */
#define CHANGE_RUNS 3u

struct change {
	bool is_known;
	uint64_t before, after;
	bool has_spread; /* some set has more than one run */
	uint64_t spread;
	bool is_change;
};

/* Returns the median of n >= 1 values: the upper one of two in the middle. Sorts them. */
uint64_t torsh_change_median(uint64_t *values, size_t n);

/*
 * Compare n_before and n_after values, by run, both at least 1. least: a difference up to this is
 * no change.
 */
struct change torsh_change_judge(const uint64_t *values, size_t n_before, size_t n_after,
				 enum change_unit unit, const struct change_rules *rules,
				 uint64_t least);

/* Returns by how much after exceeds before, in percent; infinite if only before is 0. */
double torsh_change_percent(const struct change *change);

#endif
