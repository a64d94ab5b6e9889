/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a device was busy, what it waited for in between, and what counters report about its work.
 */
#include <math.h>
#include <stdlib.h>

#include "tools/analysis/metrics.h"
#include "tools/base/die.h"

/*
 * Between two stretches the device was idle. If the later one was launched only after the earlier
 * one ended, the device waited for the host, as HTA defines it.
 */
static void add_gap(struct metrics_device *device, const struct time_scope *scope, uint64_t from_ns,
		    const struct device_stretch *next)
{
	uint64_t gap_ns = next->begin_ns - from_ns;

	if (torsh_scope_at(scope, from_ns) == STEP_NONE)
		return;
	device->gaps_ns += torsh_scope_within(scope, from_ns, next->begin_ns);
	if (next->asked_ns >= from_ns)
		device->host_wait_ns += torsh_scope_within(scope, from_ns, next->begin_ns);
	if (gap_ns > device->longest_gap_ns) {
		device->longest_gap_ns = gap_ns;
		device->gap_at_ns = from_ns;
	}
}

/* Returns what a stretch adds to the union of earlier ones, which ends at *until_ns. */
static uint64_t add_to_union(const struct device_stretch *stretch, uint64_t *until_ns,
			     const struct time_scope *scope)
{
	uint64_t begin_ns = stretch->begin_ns > *until_ns ? stretch->begin_ns : *until_ns;

	if (stretch->end_ns <= begin_ns)
		return 0;
	*until_ns = stretch->end_ns;
	return torsh_scope_within(scope, begin_ns, stretch->end_ns);
}

void torsh_metrics_settle_device(struct metrics_device *device, const struct time_scope *scope)
{
	uint64_t first_ns = 0, until_ns = 0, computed_until_ns = 0;
	struct device_stretch stretch;
	struct stretch_walk walk;
	bool is_first = true;

	torsh_stretches_walk(&walk, &device->stretches);
	while (torsh_stretches_next(&walk, &stretch)) {
		if (is_first)
			first_ns = stretch.begin_ns;
		else if (stretch.begin_ns > until_ns)
			add_gap(device, scope, until_ns, &stretch);
		is_first = false;
		device->busy_ns += add_to_union(&stretch, &until_ns, scope);
		if (!stretch.is_communication)
			device->computing_ns += add_to_union(&stretch, &computed_until_ns, scope);
	}
	if (!is_first)
		device->scope_ns = scope->is_of_steps
					   ? scope->ns
					   : torsh_scope_within(scope, first_ns, until_ns);
}

/* ---- counters -------------------------------------------------------------------------------- */

static size_t take_values(const struct counter_process *counted,
			  const struct counter_kernel *kernel, struct raw_metric *raw)
{
	size_t n = 0;

	for (uint32_t i = 0; i < COUNTERS_A_DEVICE; i++) {
		const struct counter_metric *metric =
			torsh_counters_metric(counted, kernel->device, i);

		if (metric->name && isfinite(kernel->values[i]))
			raw[n++] = (struct raw_metric){metric->name, kernel->values[i]};
	}
	return n;
}

/* Sums over the measured kernels, weighted by the number of launches with the same parameters. */
static struct kernel_sums *sum_launches(const struct counter_process *counted)
{
	struct kernel_sums *sums = torsh_need_items(NULL, 0, counted->n_launches, sizeof(*sums));
	struct raw_metric raw[COUNTERS_A_DEVICE];

	for (size_t i = 0; i < counted->n_kernels; i++) {
		const struct counter_kernel *kernel = &counted->kernels[i];

		if (kernel->launch < counted->n_launches)
			torsh_metrics_add(&sums[kernel->launch], 1, raw,
					  take_values(counted, kernel, raw));
	}
	return sums;
}

static void add_to_operator(struct metrics_process *of, const struct metrics_work *work)
{
	struct metrics_operator *op = torsh_metrics_operator(of, work->operator_name);
	double read, written, throughput, n = (double)work->n, ns = (double)work->total_ns;
	bool is_counted = torsh_metrics_value(&work->counted, METRIC_DRAM_READ, &read) &&
			  torsh_metrics_value(&work->counted, METRIC_DRAM_WRITTEN, &written) &&
			  torsh_metrics_value(&work->counted, METRIC_DRAM_THROUGHPUT, &throughput);

	op->has_several_devices =
		op->has_several_devices || (op->n_kernels && op->device != work->key.device);
	op->device = work->key.device;
	op->n_kernels += work->n;
	op->total_ns += work->total_ns;
	op->n_of_graphs += work->is_of_graph ? work->n : 0;
	if (!is_counted) {
		op->n_uncounted += work->n;
		return;
	}
	op->bytes += n * (read + written) / (double)work->counted.n_kernels;
	op->throughput_pct_ns += throughput * ns;
}

static void add_counters(struct metrics_process *of, const struct counter_process *counted)
{
	struct kernel_sums *sums = counted ? sum_launches(counted) : NULL;

	for (size_t i = 0; i < of->n_work; i++) {
		struct metrics_work *work = &of->work[i];
		int launch = counted && work->key.what == DEVICE_KERNEL
				     ? torsh_counters_launch(counted, &work->kernel)
				     : -1;

		if (launch >= 0)
			work->counted = sums[launch];
		if (work->key.what == DEVICE_KERNEL && work->operator_name)
			add_to_operator(of, work);
	}
	free(sums);
}

void torsh_metrics_counters(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->n; i++) {
		struct metrics_process *of = &metrics->processes[i];

		add_counters(of, torsh_counters_process(&metrics->counters, of->process));
	}
}
