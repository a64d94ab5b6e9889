/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counter values aggregated over several kernels: the fields of the operator recording's
 * AggregatedMetrics, by its formulas. Also an operator's position in the roofline of a device.
 */
#ifndef TORSH_DEVICE_KERNELS_KERNEL_METRICS_H
#define TORSH_DEVICE_KERNELS_KERNEL_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kernel_metric {
#define METRIC(NAME, field, WAY, form, unit, ...) METRIC_##NAME,
#include "tools/device/kernels/kernel_metrics.def"
#undef METRIC
	N_KERNEL_METRICS
};

enum metric_form { METRIC_number, METRIC_integer, METRIC_count };

extern const struct metric_field {
	const char *name, *unit;
	enum metric_form form;
} torsh_metric_fields[N_KERNEL_METRICS];

/* A counter's value of one kernel, in its base unit. */
struct raw_metric {
	const char *name;
	double value;
};

struct kernel_sums {
	uint64_t total_ns, n_kernels;
	/* index of the longest kernel, the first of equals; valid if n_kernels isn't 0 */
	size_t dominant;
	uint64_t dominant_ns;
	struct {
		bool is_known;
		double value; /* a sum, or a maximum */
		double weight_ns; /* total weight of a mean */
	} metrics[N_KERNEL_METRICS];
	/* From a counter that is no field of the published profiles. */
	bool has_tensor_instructions;
	double tensor_instructions;
};

/* Add a kernel's values. A zeroed sum has no kernels; the next one has the number n_kernels. */
void torsh_metrics_add(struct kernel_sums *sums, uint64_t duration_ns, const struct raw_metric *raw,
		       size_t n_raw);

/*
 * Get a field of all added kernels. Returns false if no kernel has it, or a mean has a total time
 * of zero.
 */
bool torsh_metrics_value(const struct kernel_sums *sums, enum kernel_metric metric, double *value);

enum tensor_use { TENSOR_CORES_UNKNOWN, TENSOR_CORES_UNUSED, TENSOR_CORES_USED };

/* Returns whether a kernel used tensor cores. */
enum tensor_use torsh_metrics_tensor_use(const struct kernel_sums *sums);

/* Returns the metric for a counter of this name, or N_KERNEL_METRICS. */
enum kernel_metric torsh_metric_of(const char *counter);

/* An operator's position in the roofline of a device with known peaks. */
struct roofline {
	double intensity; /* FLOP per byte of the device's memory traffic */
	bool is_compute_bound; /* else memory-bound */
	double ceiling_gflops;
	double efficiency_pct; /* at most 100 */
};

/* Returns false if one of the five is 0, which means unknown. */
bool torsh_roofline_of(double flops, double bytes, uint64_t duration_ns, double peak_gflops,
		       double peak_gb_per_s, struct roofline *roofline);

#endif
