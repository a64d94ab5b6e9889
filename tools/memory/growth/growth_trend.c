/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/growth/growth_trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/memory.h"

#define CORRELATION_MAX 0.95
#define PAUSE_RATIO 2 /* of the longest pause between two highs: it has stopped */
#define SLOWER_SIGMAS 2.5

/* The samples from first on, before end. */
struct part {
	const double *x, *y;
	size_t n;
};

struct quarters {
	struct part late, half, of[4];
};

static struct part part_of(const double *x, const double *y, size_t first, size_t end)
{
	return (struct part){.x = x + first, .y = y + first, .n = end - first};
}

static double mean(const double *values, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum / (double)n;
}

struct growth_slope torsh_growth_slope(const double *x, const double *y, size_t n)
{
	double mean_x = mean(x, n), mean_y = mean(y, n), xx = 0, xy = 0, rr = 0, neighbours = 0;
	double before = 0, correlation;
	struct growth_slope line = {0};

	for (size_t i = 0; i < n; i++) {
		xx += (x[i] - mean_x) * (x[i] - mean_x);
		xy += (x[i] - mean_x) * (y[i] - mean_y);
	}
	if (n < 3 || !(xx > 0))
		return line;
	line.slope = xy / xx;
	for (size_t i = 0; i < n; i++) {
		double residual = y[i] - mean_y - line.slope * (x[i] - mean_x);

		rr += residual * residual;
		neighbours += residual * before;
		before = residual;
	}
	correlation = rr > 0 ? neighbours / rr : 0;
	correlation = fmin(fmax(correlation, 0), CORRELATION_MAX);
	/* Correlated residuals are worth as many fewer ones. */
	line.error = sqrt(rr / (double)(n - 2) / xx * (1 + correlation) / (1 - correlation));
	return line;
}

/* Student's t that is exceeded with a probability of 0.001, by degrees of freedom. */
static double t_of(size_t freedom)
{
	static const double few[] = {INFINITY, 318.3, 22.33, 10.21, 7.17, 5.89, 5.21, 4.79, 4.5};

	if (freedom < sizeof(few) / sizeof(*few))
		return few[freedom];
	return 3.09 + 11.5 / (double)freedom;
}

static bool is_sloping(const struct part *part)
{
	struct growth_slope line = torsh_growth_slope(part->x, part->y, part->n);

	return line.slope > 0 && line.slope > line.error * t_of(part->n - 2);
}

static int compare_values(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Returns the value that a quarter of the others are above, or below. */
static double quartile(const struct part *part, bool is_upper)
{
	double *sorted = torsh_memory_new(part->n, sizeof(*sorted)), value;
	size_t rank = (part->n - 1) / 4;

	memcpy(sorted, part->y, part->n * sizeof(*sorted));
	qsort(sorted, part->n, sizeof(*sorted), compare_values);
	value = sorted[is_upper ? part->n - 1 - rank : rank];
	free(sorted);
	return value;
}

static bool is_higher_at_the_end(const struct quarters *quarters)
{
	const struct part *last = &quarters->of[3];
	size_t third = last->n / 3 ? last->n / 3 : 1;

	return quartile(last, false) > quartile(&quarters->of[1], true) &&
	       mean(last->y + last->n - third, third) > mean(last->y, third);
}

/* Returns true if new highs come in each quarter, up to the end, and no fall takes much back. */
static bool has_new_highs(const struct quarters *quarters)
{
	const struct part *late = &quarters->late;
	size_t n_highs[4] = {0}, latest = 0, longest = 1, end = quarters->of[1].n, quarter = 1;
	double high = late->y[0], fall = 0;

	for (size_t i = 1; i < late->n; i++) {
		while (i >= end && quarter < 3)
			end += quarters->of[++quarter].n;
		fall = fmax(fall, high - late->y[i]);
		if (late->y[i] <= high)
			continue;
		high = late->y[i];
		n_highs[quarter]++;
		longest = i - latest > longest ? i - latest : longest;
		latest = i;
	}
	return n_highs[1] && n_highs[2] && n_highs[3] && 3 * fall <= high - late->y[0] &&
	       late->n - 1 - latest <= PAUSE_RATIO * longest;
}

/* Returns the part's gain per x; *variance is that of its single changes, added up. */
static double rate_of(const struct part *part, double *variance)
{
	double length = part->x[part->n - 1] - part->x[0], gain = part->y[part->n - 1] - part->y[0];
	double a_change = gain / (double)(part->n - 1), sum = 0;

	for (size_t i = 1; i < part->n; i++) {
		double deviation = part->y[i] - part->y[i - 1] - a_change;

		sum += deviation * deviation;
	}
	*variance = sum / (length * length);
	return gain / length;
}

static bool is_slowing_down(const struct quarters *quarters)
{
	double before_variance, last_variance;
	double before = rate_of(&quarters->of[1], &before_variance);
	double last = rate_of(&quarters->of[3], &last_variance);

	return last < before / 2 &&
	       before - last > SLOWER_SIGMAS * sqrt(before_variance + last_variance);
}

bool torsh_growth_goes_on(const double *x, const double *y, size_t n)
{
	struct quarters quarters = {.late = part_of(x, y, torsh_growth_first_late(n), n),
				    .half = part_of(x, y, n / 2, n)};

	if (n < GROWTH_SAMPLES_MIN)
		return false;
	for (size_t i = 0; i < 4; i++)
		quarters.of[i] = part_of(x, y, n * i / 4, n * (i + 1) / 4);
	return is_sloping(&quarters.late) && is_sloping(&quarters.half) &&
	       is_higher_at_the_end(&quarters) && has_new_highs(&quarters) &&
	       !is_slowing_down(&quarters);
}
