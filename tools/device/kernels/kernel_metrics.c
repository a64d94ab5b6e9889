/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/kernel_metrics.h"

#include <math.h>
#include <string.h>

#define TENSOR_INSTRUCTIONS "sm__inst_executed_pipe_tensor.sum"
#define COUNTERS_MAX 5u /* counter names of one metric, and a NULL */

enum metric_way { WAY_SUM, WAY_MEAN, WAY_MAX };

const struct metric_field torsh_metric_fields[N_KERNEL_METRICS] = {
#define METRIC(NAME, field, WAY, form, unit, ...) {#field, unit, METRIC_##form},
#include "tools/device/kernels/kernel_metrics.def"
#undef METRIC
};

static const enum metric_way ways[N_KERNEL_METRICS] = {
#define METRIC(NAME, field, WAY, form, unit, ...) WAY_##WAY,
#include "tools/device/kernels/kernel_metrics.def"
#undef METRIC
};

static const char *const counters[N_KERNEL_METRICS][COUNTERS_MAX] = {
#define METRIC(NAME, field, WAY, form, unit, ...) {__VA_ARGS__},
#include "tools/device/kernels/kernel_metrics.def"
#undef METRIC
};

enum kernel_metric torsh_metric_of(const char *counter)
{
	for (int metric = 0; metric < N_KERNEL_METRICS; metric++) {
		for (size_t i = 0; i < COUNTERS_MAX && counters[metric][i]; i++) {
			if (strcmp(counters[metric][i], counter) == 0)
				return metric;
		}
	}
	return N_KERNEL_METRICS;
}

static bool find_raw(const struct raw_metric *raw, size_t n_raw, enum kernel_metric metric,
		     double *value)
{
	for (size_t i = 0; i < COUNTERS_MAX && counters[metric][i]; i++) {
		for (size_t k = 0; k < n_raw; k++) {
			if (strcmp(counters[metric][i], raw[k].name) == 0 &&
			    isfinite(raw[k].value)) {
				*value = raw[k].value;
				return true;
			}
		}
	}
	return false;
}

static void add_metric(struct kernel_sums *sums, enum kernel_metric metric, double value,
		       uint64_t duration_ns)
{
	double *sum = &sums->metrics[metric].value;

	if (ways[metric] == WAY_SUM)
		*sum += value;
	else if (ways[metric] == WAY_MEAN)
		*sum += value * (double)duration_ns;
	else if (!sums->metrics[metric].is_known || value > *sum)
		*sum = value;
	sums->metrics[metric].weight_ns += (double)duration_ns;
	sums->metrics[metric].is_known = true;
}

void torsh_metrics_add(struct kernel_sums *sums, uint64_t duration_ns, const struct raw_metric *raw,
		       size_t n_raw)
{
	double value;

	if (!sums->n_kernels || duration_ns > sums->dominant_ns) {
		sums->dominant = sums->n_kernels;
		sums->dominant_ns = duration_ns;
	}
	sums->n_kernels++;
	sums->total_ns += duration_ns;
	for (int metric = 0; metric < N_KERNEL_METRICS; metric++) {
		if (find_raw(raw, n_raw, metric, &value))
			add_metric(sums, metric, value, duration_ns);
	}
	for (size_t i = 0; i < n_raw; i++) {
		if (strcmp(raw[i].name, TENSOR_INSTRUCTIONS) != 0 || !isfinite(raw[i].value))
			continue;
		sums->has_tensor_instructions = true;
		sums->tensor_instructions += raw[i].value;
	}
}

bool torsh_metrics_value(const struct kernel_sums *sums, enum kernel_metric metric, double *value)
{
	if (!sums->metrics[metric].is_known)
		return false;
	*value = sums->metrics[metric].value;
	if (ways[metric] != WAY_MEAN)
		return true;
	if (!(sums->metrics[metric].weight_ns > 0))
		return false;
	*value /= sums->metrics[metric].weight_ns;
	return true;
}

bool torsh_roofline_of(double flops, double bytes, uint64_t duration_ns, double peak_gflops,
		       double peak_gb_per_s, struct roofline *roofline)
{
	double bandwidth_gflops, achieved_gflops;

	if (!(flops > 0 && bytes > 0 && duration_ns && peak_gflops > 0 && peak_gb_per_s > 0))
		return false;
	roofline->intensity = flops / bytes;
	bandwidth_gflops = roofline->intensity * peak_gb_per_s;
	roofline->is_compute_bound = bandwidth_gflops >= peak_gflops;
	roofline->ceiling_gflops = roofline->is_compute_bound ? peak_gflops : bandwidth_gflops;
	achieved_gflops = flops / (double)duration_ns;
	roofline->efficiency_pct = fmin(100, 100 * achieved_gflops / roofline->ceiling_gflops);
	return true;
}

enum tensor_use torsh_metrics_tensor_use(const struct kernel_sums *sums)
{
	double active_pct;
	bool has_active = torsh_metrics_value(sums, METRIC_TENSOR_CORES, &active_pct);

	if (!has_active && !sums->has_tensor_instructions)
		return TENSOR_CORES_UNKNOWN;
	return (has_active && active_pct > 0) || sums->tensor_instructions > 0
		       ? TENSOR_CORES_USED
		       : TENSOR_CORES_UNUSED;
}
