/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Repetitions in a sequence: the layers of a model, found in its launches, which are numbered so
 * that launches with equal parameters have equal numbers. A run is a subsequence with a period:
 * s[i] == s[i + period], at least twice as long as the period.
 */
#ifndef TORSH_DEVICE_KERNELS_LAYERS_H
#define TORSH_DEVICE_KERNELS_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYERS_SEQUENCE_MAX 65536u /* items beyond this are ignored */

struct layer_run {
	size_t start, period, n_instances;
	size_t n_rest; /* items of the last, incomplete instance: fewer than a period */
};

/* Accepts or rejects a run of layers; may move and shorten it, but only within its bounds. */
typedef bool layers_accept(void *context, struct layer_run *run);

/*
 * Find runs that do not overlap and have at least two different items per period; those that cover
 * most come first, as accepted. O(n log^2 n). Returns their number; the caller frees *runs.
 */
size_t torsh_layers_find(const uint64_t *items, size_t n, layers_accept *accept, void *context,
			 struct layer_run **runs);

/* Returns a hash of the n items. */
uint64_t torsh_layers_hash(const uint64_t *items, size_t n);

#endif
