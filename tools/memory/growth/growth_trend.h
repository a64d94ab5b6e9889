/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether a series of values, such as the live bytes of a stack at ends of steps, goes on growing:
 * by its slope and the error of that, and by how it grows. What fills up and is then full, what is
 * emptied now and then and what only fluctuates does not.
 */
#ifndef TORSH_MEMORY_GROWTH_GROWTH_TREND_H
#define TORSH_MEMORY_GROWTH_GROWTH_TREND_H

#include <stdbool.h>
#include <stddef.h>

#define GROWTH_SAMPLES_MIN 8u /* fewer decide nothing */

/* A line through values by least squares. */
struct growth_slope {
	double slope; /* by 1 of x */
	/* its standard error; the residuals' correlation with their neighbours is accounted for */
	double error;
};

/* Returns the line through n >= 3 values; x rises. */
struct growth_slope torsh_growth_slope(const double *x, const double *y, size_t n);

/* Returns the number of the first sample that counts: those before it are the warm-up. */
static inline size_t torsh_growth_first_late(size_t n)
{
	return n / 4;
}

/*
 * Returns true if y goes on growing with x, which rises: all of this holds.
 *	The slopes of the samples after the warm-up and of the last half are positive, with a
 *	probability below 0.001 that noise looks like it.
 *	Most of the last quarter is above most of the second: no fluctuation is.
 *	New highs come in each quarter after the warm-up, and the last one is not long ago: it is
 *	not full.
 *	It does not fall by more than a third of what it gained.
 *	It does not slow down by more than half, as what fills up at random does.
 */
bool torsh_growth_goes_on(const double *x, const double *y, size_t n);

#endif
