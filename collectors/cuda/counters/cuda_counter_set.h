/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The metrics measured on one device. */
#ifndef TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_SET_H
#define TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_SET_H

#include <stddef.h>
#include <stdint.h>

#include "shim/cuda/cupti_profiler.h"

#define COUNTERS_MAX 32u /* metrics of a set */

/* What is measured on one device. */
struct counter_set {
	enum cupti_profiler_type type;
	size_t n_passes;
	uint32_t n;
	const char *names[COUNTERS_MAX];
	uint8_t rows[COUNTERS_MAX]; /* of cuda_counters.def */
	void *host;
	uint8_t *config; /* in use by CUPTI until the set is freed */
	size_t config_bytes;
};

enum counter_choice {
	K1 = 1, /* kernels, in one pass */
	K2 = 2, /* kernels, in two passes */
	T = 4, /* a device at intervals */
	FULL = 8, /* kernels, in as many passes as it takes */
};

/*
 * Choose the metrics of cuda_counters.def that the chip supports and that fit into the passes.
 * availability: CUPTI's counter availability image of the device, or NULL: the chip's name alone
 * decides. Returns 0, or CUPTI's result: then the set is empty.
 */
int torsh_counter_set_choose(struct counter_set *set, enum counter_choice choice, const char *chip,
			     const uint8_t *availability);

/* Free what the set owns in CUPTI and in memory. */
void torsh_counter_set_free(struct counter_set *set);

/* Send the definitions of the set's metrics on the device. interval_ns: 0 for kernels. */
void torsh_counter_set_send(const struct counter_set *set, uint32_t device, const char *chip,
			    uint64_t interval_ns);

/*
 * Evaluate range or sample number index of the counter data image into values[set->n]. Returns 0 or
 * CUPTI's result.
 */
int torsh_counter_set_evaluate(const struct counter_set *set, const uint8_t *image,
			       size_t image_bytes, size_t index, double *values);

/* The number of a metric in events: unique over devices. */
static inline uint32_t torsh_counter_number(uint32_t device, uint32_t index)
{
	return device * COUNTERS_MAX + index;
}

/*
 * Copy up to COUNTER_VALUES values, from number first on, into the fields of an event. Returns
 * their number.
 */
uint32_t torsh_counter_values(const double *values, uint32_t first, uint32_t n, uint64_t *fields);

/* The field of a row of cuda_counters.def, which is its name in reports. */
const char *torsh_counter_field(uint8_t row);

#endif
