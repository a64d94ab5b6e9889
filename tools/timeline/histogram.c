/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/histogram.h"

#include <math.h>
#include <stdlib.h>

#include "tools/base/die.h"

/*
 * Row 0 has the values below HISTOGRAM_BUCKETS; row r those from 2^(r + BITS - 1) up to twice
 * that.
 */
static uint32_t row_of(uint64_t value)
{
	uint32_t bits = value ? 64 - (uint32_t)__builtin_clzll(value) : 0;

	return bits > HISTOGRAM_BITS ? bits - HISTOGRAM_BITS : 0;
}

/* Returns the bucket within the row: the binary digits after the first one. */
static uint32_t bucket_of(uint64_t value, uint32_t row)
{
	return row ? (uint32_t)(value >> (row - 1)) & (HISTOGRAM_BUCKETS - 1) : (uint32_t)value;
}

static uint64_t middle_of(uint32_t row, uint32_t bucket)
{
	return row ? ((uint64_t)(HISTOGRAM_BUCKETS + bucket) << (row - 1)) +
			       ((UINT64_C(1) << (row - 1)) >> 1)
		   : bucket;
}

void torsh_histogram_add(struct histogram *histogram, uint64_t value)
{
	uint32_t row = row_of(value);

	if (!histogram->rows[row])
		histogram->rows[row] =
			torsh_need(calloc(HISTOGRAM_BUCKETS, sizeof(**histogram->rows)));
	histogram->rows[row][bucket_of(value, row)]++;
	histogram->n++;
}

uint64_t torsh_histogram_percentile(const struct histogram *histogram, double share)
{
	/* Minus the rounding error of the product: 81 % of 5000 is 4050. */
	uint64_t wanted = (uint64_t)ceil(share * (double)histogram->n * (1 - 1e-12)), n = 0;

	for (uint32_t row = 0; row < HISTOGRAM_ROWS; row++) {
		for (uint32_t i = 0; histogram->rows[row] && i < HISTOGRAM_BUCKETS; i++) {
			n += histogram->rows[row][i];
			if (n && n >= wanted)
				return middle_of(row, i);
		}
	}
	return 0;
}

void torsh_histogram_free(struct histogram *histogram)
{
	for (uint32_t row = 0; row < HISTOGRAM_ROWS; row++)
		free(histogram->rows[row]);
}
