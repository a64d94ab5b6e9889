/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/tensorboard/tensorboard_histogram.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

#define SMALLEST 1e-12
#define LARGEST 1e20
#define GROWTH 1.1
#define POSITIVE_MAX 800u /* positive limits between the smallest and the largest, rounded up */
#define LIMITS_MAX (2 * (POSITIVE_MAX + 1) + 1)

static struct {
	double items[LIMITS_MAX]; /* ascending; the last one is above all numbers */
	size_t n;
} limits;

static void make_limits(void)
{
	double positive[POSITIVE_MAX + 1];
	size_t n = 0;

	for (double limit = SMALLEST; limit < LARGEST && n < POSITIVE_MAX; limit *= GROWTH)
		positive[n++] = limit;
	positive[n++] = DBL_MAX;
	for (size_t i = n; i; i--)
		limits.items[limits.n++] = -positive[i - 1];
	limits.items[limits.n++] = 0;
	memcpy(limits.items + limits.n, positive, n * sizeof(*positive));
	limits.n += n;
}

/* Returns the first bucket with a limit above the number. */
static size_t find_bucket(double number)
{
	size_t low = 0, high = limits.n - 1;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (limits.items[middle] > number)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void torsh_tensorboard_histogram_add(struct tensorboard_histogram *histogram, double number)
{
	if (!limits.n)
		make_limits();
	if (!histogram->buckets)
		histogram->buckets =
			torsh_need_items(NULL, 0, limits.n, sizeof(*histogram->buckets));
	histogram->min = histogram->n && histogram->min < number ? histogram->min : number;
	histogram->max = histogram->n && histogram->max > number ? histogram->max : number;
	histogram->sum += number;
	histogram->sum_squares += number * number;
	histogram->buckets[find_bucket(number)]++;
	histogram->n++;
}

/* Adjacent empty buckets are merged, as in TensorFlow. Returns the number of buckets. */
static size_t fill(const struct tensorboard_histogram *histogram, double *ends, double *counts)
{
	size_t n = 0;

	for (size_t i = 0; i < limits.n; i++) {
		if (n && !histogram->buckets[i] && counts[n - 1] == 0)
			n--;
		ends[n] = limits.items[i];
		counts[n++] = (double)histogram->buckets[i];
	}
	return n;
}

void torsh_tensorboard_histogram_flush(struct tensorboard_histogram *histogram,
				       struct tensorboard_file *tensorboard, const char *tag,
				       uint64_t step, uint64_t at_ns)
{
	Tensorboard__HistogramProto message = TENSORBOARD__HISTOGRAM_PROTO__INIT;
	double ends[LIMITS_MAX], counts[LIMITS_MAX];

	if (!histogram->n)
		return;
	message.has_min = message.has_max = message.has_num = message.has_sum =
		message.has_sum_squares = 1;
	message.min = histogram->min;
	message.max = histogram->max;
	message.num = (double)histogram->n;
	message.sum = histogram->sum;
	message.sum_squares = histogram->sum_squares;
	message.n_bucket = message.n_bucket_limit = fill(histogram, ends, counts);
	message.bucket_limit = ends;
	message.bucket = counts;
	torsh_tensorboard_histogram(tensorboard, tag, step, at_ns, &message);
	memset(histogram->buckets, 0, limits.n * sizeof(*histogram->buckets));
	*histogram = (struct tensorboard_histogram){.buckets = histogram->buckets};
}

void torsh_tensorboard_histogram_free(struct tensorboard_histogram *histogram)
{
	free(histogram->buckets);
}
