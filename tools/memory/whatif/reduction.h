/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What PyTorch's sums over the rows of a matrix allocate beside their result, such as gradients of
 * biases: where there are many rows, several blocks of threads add up a column, each with its part
 * in memory. So that grows in steps, and is nothing at all for few rows.
 */
#ifndef TORSH_MEMORY_WHATIF_REDUCTION_H
#define TORSH_MEMORY_WHATIF_REDUCTION_H

#include "tools/memory/shapes/batch.h"

struct reduction {
	uint64_t rows, columns; /* 0: there is none */
	bool has_batch; /* in the rows */
};

/* Find the sum of an operator with these inputs. */
struct reduction torsh_reduction_of(const struct batch *batch, const char *operator_name,
				    const struct inputs *inputs);

/*
 * Returns the bytes for the parts of the sums, on a device that runs so many threads at once; 0:
 * none. n_threads 0: that is not known, and taken to be no limit.
 */
uint64_t torsh_reduction_bytes(const struct reduction *reduction, uint64_t n_threads);

#endif
