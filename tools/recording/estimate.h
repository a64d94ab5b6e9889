/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Figures of sampled heaps (Heap.sampled_every) are estimates with variances, which add up as the
 * figures do.
 */
#ifndef TORSH_RECORDING_ESTIMATE_H
#define TORSH_RECORDING_ESTIMATE_H

#include <stdint.h>

struct estimate_variance {
	double blocks, bytes;
};

struct estimate_interval {
	uint64_t low, high;
};

/*
 * The 95 % interval of an estimate: the true values from which it is not further away than 1.96
 * standard deviations, where the variance is proportional to the true value (the score interval of
 * a Poisson count; it is not symmetric, and right for few samples too). Both ends are the estimate
 * if the variance is 0. Numbers of blocks are those of the sizes that had samples: small blocks of
 * a site with large ones may be missing.
 */
struct estimate_interval torsh_estimate_interval(uint64_t estimate, double variance);

#endif
