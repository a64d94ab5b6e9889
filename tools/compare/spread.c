/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/compare/spread.h"

#include <math.h>
#include <stdbool.h>

#define HALVINGS 60
#define QUARTER_TURN 1.57079632679489661923

/*
 * The probability of |T| <= sqrt(n_free) tan(angle) for Student's t with n_free degrees of
 * freedom.
 */
static double inside(double angle, size_t n_free)
{
	bool is_odd = n_free % 2;
	double c = cos(angle), term = is_odd ? c : 1, sum = 0;

	for (size_t k = is_odd ? 3 : 2; k <= n_free; k += 2) {
		sum += term;
		term *= c * c * (double)(k - 1) / (double)k;
	}
	return is_odd ? (angle + sin(angle) * sum) / QUARTER_TURN : sin(angle) * sum;
}

double torsh_spread_quantile(double alpha, size_t n_free)
{
	double low = 0, high = QUARTER_TURN;

	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;

		if (inside(middle, n_free) < 1 - alpha)
			low = middle;
		else
			high = middle;
	}
	return sqrt((double)n_free) * tan(low);
}

/* Returns the sum of squared deviations from the mean of n values, and their range. */
static double sum_squares(const uint64_t *values, size_t n, uint64_t *range)
{
	uint64_t least = UINT64_MAX, most = 0;
	double mean = 0, sum = 0;

	for (size_t i = 0; i < n; i++) {
		least = values[i] < least ? values[i] : least;
		most = values[i] > most ? values[i] : most;
		mean += (double)values[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++)
		sum += ((double)values[i] - mean) * ((double)values[i] - mean);
	*range = most - least;
	return sum;
}

uint64_t torsh_spread(const uint64_t *values, size_t n_before, size_t n_after, size_t n_figures)
{
	size_t n_free = n_before + n_after - 2;
	uint64_t range_before, range_after, range;
	double squares = sum_squares(values, n_before, &range_before) +
			 sum_squares(values + n_before, n_after, &range_after);
	double margin = torsh_spread_quantile(SPREAD_ALPHA / (double)n_figures, n_free) *
			sqrt(squares / (double)n_free) *
			sqrt(1 / (double)n_before + 1 / (double)n_after);

	range = range_before > range_after ? range_before : range_after;
	/* Equal runs have no margin, despite rounding of the mean. */
	if (!range || margin <= (double)range)
		return range;
	return margin < (double)INT64_MAX ? (uint64_t)ceil(margin) : INT64_MAX;
}
