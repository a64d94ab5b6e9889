/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What repeats itself in a sequence: the layers of a model, of the launches of which only numbers
 * are known that are equal where launches are alike. A run is a stretch with a period: s[i] == s[i
 * + period], at least twice as long as that.
 */
#ifndef TORSH_DEVICE_KERNELS_LAYERS_H
#define TORSH_DEVICE_KERNELS_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYERS_SEQUENCE_MAX 65536u /* of a longer sequence only so much is looked at */

struct layer_run {
	size_t start, period, n_instances;
	size_t n_rest; /* what goes on alike after the last whole instance: less than a period */
};

/*
 * Is this a run of layers? It may be moved and shortened, but not beyond its own bounds.
 */
typedef bool layers_accept(void *context, struct layer_run *run);

/*
 * Find runs that don't overlap, of two different items at least in a period: those that cover most
 * first, as accepted. O(n log^2 n). Returns how many, in the order in which they were accepted;
 * *runs is the caller's to free.
 */
size_t torsh_layers_find(const uint64_t *items, size_t n, layers_accept *accept, void *context,
			 struct layer_run **runs);

/* A number for the n items, equal for equal ones. */
uint64_t torsh_layers_hash(const uint64_t *items, size_t n);

#endif
