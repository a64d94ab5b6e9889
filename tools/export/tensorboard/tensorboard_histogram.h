/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Numbers in the buckets that TensorFlow uses by default: 1e-12 and up, each limit 1.1 times the
 * one before, and below 0.
 */
#ifndef TORSH_EXPORT_TENSORBOARD_TENSORBOARD_HISTOGRAM_H
#define TORSH_EXPORT_TENSORBOARD_TENSORBOARD_HISTOGRAM_H

#include <stdint.h>

#include "tools/export/tensorboard/tensorboard_file.h"

struct tensorboard_histogram {
	uint64_t n;
	double min, max, sum, sum_squares;
	uint64_t *buckets; /* made when the first number comes */
};

/* The number is finite. The histogram begins as all zero. */
void torsh_tensorboard_histogram_add(struct tensorboard_histogram *histogram, double number);

/* Write it, unless it is empty, and empty it. */
void torsh_tensorboard_histogram_flush(struct tensorboard_histogram *histogram,
				       struct tensorboard_file *tensorboard, const char *tag,
				       uint64_t step, uint64_t at_ns);

/* Free its buckets. */
void torsh_tensorboard_histogram_free(struct tensorboard_histogram *histogram);

#endif
