/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How far two sets of runs of the same program may lie apart by chance.
 *
 * The spread is the larger of two distances. One is the largest distance between two runs of one
 * set. That alone is too small for few runs: three runs seldom show how much a fourth one differs.
 * The other is Student's margin for two sets with one variance,
 *
 *	t(1 - alpha / 2, n1 + n2 - 2) * s * sqrt(1 / n1 + 1 / n2),
 *	s^2 = (sum (x1 - mean 1)^2 + sum (x2 - mean 2)^2) / (n1 + n2 - 2)
 *
 * (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.3). Figures that are judged together
 * share alpha = 0.01 evenly (Bonferroni): of a hundred tables of equal sets, one shows a change, or
 * two, as the medians that are compared vary more than means. The quantile inverts the series of
 * Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4. The margin holds
 * for noise that is about normal.
 */
#ifndef TORSH_COMPARE_SPREAD_H
#define TORSH_COMPARE_SPREAD_H

#include <stddef.h>
#include <stdint.h>

#define SPREAD_ALPHA 0.01

/* The t that Student's distribution exceeds on either side with probability alpha; n_free >= 1. */
double torsh_spread_quantile(double alpha, size_t n_free);

/*
 * The spread of n_before values and the n_after that follow them, at least 1 each and 3 together.
 * n_figures (at least 1) are judged together.
 */
uint64_t torsh_spread(const uint64_t *values, size_t n_before, size_t n_after, size_t n_figures);

#endif
