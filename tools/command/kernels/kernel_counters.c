/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/kernels/kernel_counters.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/base/size.h"

/* Means are weighted by kernel time. */
#define WEIGHT_FIELD "gpu_time_duration_ns"

/* One metric, averaged over kernels. */
struct total {
	const struct counter_metric *metric; /* NULL: the entry is free */
	double sum, max, weighted, weights;
	uint64_t n;
};

struct totals {
	struct total items[2 * COUNTERS_A_DEVICE]; /* devices may have two kinds of chips */
	uint64_t n_kernels;
};

static struct total *find_total(struct totals *totals, const struct counter_metric *metric)
{
	for (size_t i = 0; i < sizeof(totals->items) / sizeof(*totals->items); i++) {
		struct total *total = &totals->items[i];

		if (!total->metric)
			*total = (struct total){.metric = metric, .max = -INFINITY};
		if (!strcmp(total->metric->name, metric->name))
			return total;
	}
	return NULL;
}

static double weight_of(const struct counter_process *process, const struct counter_kernel *kernel)
{
	for (uint32_t i = 0; i < COUNTERS_A_DEVICE; i++) {
		const struct counter_metric *metric =
			torsh_counters_metric(process, kernel->device, i);

		if (metric->field && !strcmp(metric->field, WEIGHT_FIELD) && kernel->values[i] > 0)
			return kernel->values[i];
	}
	return 1;
}

static void add_kernel(struct totals *totals, const struct counter_process *process,
		       const struct counter_kernel *kernel)
{
	double weight = weight_of(process, kernel);

	totals->n_kernels++;
	for (uint32_t i = 0; i < COUNTERS_A_DEVICE; i++) {
		const struct counter_metric *metric =
			torsh_counters_metric(process, kernel->device, i);
		struct total *total = metric->name && isfinite(kernel->values[i])
					      ? find_total(totals, metric)
					      : NULL;

		if (!total)
			continue;
		total->n++;
		total->sum += kernel->values[i];
		total->max = fmax(total->max, kernel->values[i]);
		total->weighted += kernel->values[i] * weight;
		total->weights += weight;
	}
}

static const char *name_of(const struct counter_process *process,
			   const struct counter_kernel *kernel)
{
	const char *name = NULL;

	if (kernel->launch < process->n_launches)
		name = torsh_timeline_label(process->process,
					    process->launches[kernel->launch].like.name);
	return name ? name : "";
}

static void collect(struct totals *totals, const struct counters *counters, const char *symbol)
{
	*totals = (struct totals){0};
	for (size_t i = 0; i < counters->n; i++) {
		const struct counter_process *process = &counters->processes[i];

		for (size_t k = 0; k < process->n_kernels; k++)
			if (!strcmp(name_of(process, &process->kernels[k]), symbol))
				add_kernel(totals, process, &process->kernels[k]);
	}
}

static double value_of(const struct total *total)
{
	switch (total->metric->aggregate) {
	case COUNTER_SUM:
		return total->sum;
	case COUNTER_MAX:
		return total->max;
	default:
		return total->weighted / total->weights;
	}
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void emit_total(struct json_writer *json, const struct total *total)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "name", total->metric->name);
	torsh_json_put_text(json, "field", total->metric->field);
	torsh_json_put_text(json, "unit", total->metric->unit);
	torsh_json_put_text(json, "aggregate",
			    torsh_counter_aggregate_name(total->metric->aggregate));
	torsh_json_put_double(json, "value", value_of(total));
	torsh_json_put_double(json, "per_kernel", total->sum / (double)total->n);
	torsh_json_end_object(json);
}

void torsh_kernel_counters_json(struct json_writer *json, const struct counters *counters,
				const char *symbol)
{
	struct totals totals;

	collect(&totals, counters, symbol);
	if (!totals.n_kernels) {
		torsh_json_put_null(json, "counters");
		return;
	}
	torsh_json_begin_object(json, "counters");
	torsh_json_put_u64(json, "measured", totals.n_kernels);
	torsh_json_begin_array(json, "metrics");
	for (size_t i = 0;
	     i < sizeof(totals.items) / sizeof(*totals.items) && totals.items[i].metric; i++)
		emit_total(json, &totals.items[i]);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void emit_losses(struct json_writer *json, const struct counter_process *process)
{
	const struct event_counter_loss *losses = &process->losses;

	if (!process->has_losses) {
		torsh_json_put_null(json, "sums");
		return;
	}
	torsh_json_begin_object(json, "sums");
#define LOSS(name) torsh_json_put_u64(json, #name, losses->name);
	COUNTER_LOSSES
#undef LOSS
	torsh_json_end_object(json);
}

static void emit_device(struct json_writer *json, const struct counter_process *process,
			const struct counter_device *device)
{
	const struct event_counter_mode *mode = &device->mode;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", process->process->pid);
	torsh_json_put_known(json, "device", device->device != COUNTER_ALL_DEVICES, device->device);
	torsh_json_put_text(json, "mode", torsh_counter_mode_name(mode->mode));
	torsh_json_put_text(json, "reason", torsh_timeline_label(process->process, mode->reason));
	torsh_json_put_text(json, "chip", torsh_timeline_label(process->process, mode->chip));
	torsh_json_put_known(json, "passes", mode->passes, mode->passes);
	torsh_json_put_known(json, "interval_ns", mode->interval_ns, mode->interval_ns);
	torsh_json_put_u64(json, "metrics", mode->n_metrics);
	emit_losses(json, process);
	torsh_json_end_object(json);
}

void torsh_kernel_counters_modes_json(struct json_writer *json, const struct counters *counters)
{
	torsh_json_begin_lines(json, "counters");
	for (size_t i = 0; i < counters->n; i++)
		for (size_t k = 0; k < counters->processes[i].n_devices; k++)
			emit_device(json, &counters->processes[i],
				    &counters->processes[i].devices[k]);
	torsh_json_end_array(json);
}

/* ---- text ------------------------------------------------------------------------------------ */

void torsh_kernel_counters_print(const struct counters *counters, const char *symbol)
{
	struct totals totals;

	collect(&totals, counters, symbol);
	for (size_t i = 0;
	     i < sizeof(totals.items) / sizeof(*totals.items) && totals.items[i].metric; i++) {
		const struct total *total = &totals.items[i];
		const char *unit = total->metric->unit ? total->metric->unit : "";
		bool is_mean = total->metric->aggregate == COUNTER_MEAN;

		printf("    %16.6g %s%s  %s, of %" PRIu64 " measured\n",
		       is_mean ? value_of(total) : total->sum / (double)total->n, unit,
		       is_mean ? "" : " a kernel", total->metric->field, totals.n_kernels);
	}
}

static void print_losses(const struct event_counter_loss *losses)
{
	const struct {
		uint64_t n;
		const char *why;
	} left_out[] = {
		{losses->collective, "might have waited for a collective"},
		{losses->waiting, "came after the program made a stream wait for itself"},
		{losses->capturing, "came while a stream was captured"},
		{losses->busy, "came while another thread launched"},
		{losses->failed, "CUPTI could not measure"},
		{losses->graphs, "graphs were launched: their kernels are not measured"},
	};
	char kernels[SIZE_TEXT_BYTES], samples[SIZE_TEXT_BYTES];

	printf("; %s, %s (%" PRIu64 " lost)",
	       torsh_size_counted(losses->kernels, "kernel", kernels),
	       torsh_size_counted(losses->samples, "sample", samples), losses->lost);
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if (left_out[i].n)
			printf("; %" PRIu64 " %s", left_out[i].n, left_out[i].why);
}

void torsh_kernel_counters_modes_print(const struct counters *counters)
{
	for (size_t i = 0; i < counters->n; i++) {
		const struct counter_process *process = &counters->processes[i];

		for (size_t k = 0; k < process->n_devices; k++) {
			const struct counter_device *device = &process->devices[k];
			const char *chip =
				torsh_timeline_label(process->process, device->mode.chip);

			/* The reason is among the notes. */
			if (device->mode.mode == COUNTERS_OFF)
				continue;
			printf("pid %" PRIu32 ": counters of %s, %" PRIu32
			       " metrics of device %" PRIu32 " (%s)",
			       process->process->pid, torsh_counter_mode_name(device->mode.mode),
			       device->mode.n_metrics, device->device, chip ? chip : "?");
			if (process->has_losses)
				print_losses(&process->losses);
			putchar('\n');
		}
	}
}
