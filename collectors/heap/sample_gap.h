/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The distances between the sample points of sampler.h: exponentially distributed. */
#ifndef TORSH_COLLECTORS_HEAP_SAMPLE_GAP_H
#define TORSH_COLLECTORS_HEAP_SAMPLE_GAP_H

#include <stdint.h>

/*
 * The next gap between two sample points, in bytes rounded up: at least 1. Advances *random, which
 * is not 0.
 */
int64_t torsh_sampler_gap(uint64_t *random, uint64_t rate);

#endif
