/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/kernels/kernel_counters.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * Kernels' own time, by which means are weighted: a long kernel says more of a device than a short
 * one.
 */
#define WEIGHT_FIELD "gpu_time_duration_ns"

/* One metric over kernels. */
struct total {
	const struct counter_metric *metric; /* NULL: the place is free */
	double sum, max, weighted, weights;
	uint64_t n;
};

struct totals {
	struct total items[2 * COUNTERS_A_DEVICE]; /* devices may be of two kinds of chips */
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

static cJSON *make_total(const struct total *total)
{
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "name", torsh_json_text(total->metric->name));
	torsh_json_set(object, "field", torsh_json_text(total->metric->field));
	torsh_json_set(object, "unit", torsh_json_text(total->metric->unit));
	torsh_json_set(object, "aggregate",
		       torsh_json_text(torsh_counter_aggregate_name(total->metric->aggregate)));
	torsh_json_set(object, "value", torsh_json_double(value_of(total)));
	torsh_json_set(object, "per_kernel", torsh_json_double(total->sum / (double)total->n));
	return object;
}

cJSON *torsh_kernel_counters_json(const struct counters *counters, const char *symbol)
{
	struct totals totals;
	cJSON *object, *list;

	collect(&totals, counters, symbol);
	if (!totals.n_kernels)
		return torsh_json_text(NULL);
	object = torsh_json_object();
	list = torsh_json_list();
	for (size_t i = 0;
	     i < sizeof(totals.items) / sizeof(*totals.items) && totals.items[i].metric; i++)
		torsh_json_add(list, make_total(&totals.items[i]));
	torsh_json_set(object, "measured", torsh_json_u64(totals.n_kernels));
	torsh_json_set(object, "metrics", list);
	return object;
}

static cJSON *make_losses(const struct counter_process *process)
{
	const struct event_counter_loss *losses = &process->losses;
	cJSON *object;

	if (!process->has_losses)
		return torsh_json_text(NULL);
	object = torsh_json_object();
#define LOSS(name) torsh_json_set(object, #name, torsh_json_u64(losses->name));
	COUNTER_LOSSES
#undef LOSS
	return object;
}

static cJSON *make_device(const struct counter_process *process,
			  const struct counter_device *device)
{
	const struct event_counter_mode *mode = &device->mode;
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "pid", torsh_json_u64(process->process->pid));
	torsh_json_set(object, "device",
		       device->device == COUNTER_ALL_DEVICES ? torsh_json_text(NULL)
							     : torsh_json_u64(device->device));
	torsh_json_set(object, "mode", torsh_json_text(torsh_counter_mode_name(mode->mode)));
	torsh_json_set(object, "reason",
		       torsh_json_text(torsh_timeline_label(process->process, mode->reason)));
	torsh_json_set(object, "chip",
		       torsh_json_text(torsh_timeline_label(process->process, mode->chip)));
	torsh_json_set(object, "passes",
		       mode->passes ? torsh_json_u64(mode->passes) : torsh_json_text(NULL));
	torsh_json_set(object, "interval_ns",
		       mode->interval_ns ? torsh_json_u64(mode->interval_ns)
					 : torsh_json_text(NULL));
	torsh_json_set(object, "metrics", torsh_json_u64(mode->n_metrics));
	torsh_json_set(object, "sums", make_losses(process));
	return object;
}

void torsh_kernel_counters_modes_json(struct json *json, const struct counters *counters)
{
	torsh_json_array(json, "counters");
	for (size_t i = 0; i < counters->n; i++)
		for (size_t k = 0; k < counters->processes[i].n_devices; k++)
			torsh_json_item(json, make_device(&counters->processes[i],
							  &counters->processes[i].devices[k]));
	torsh_json_array_end(json);
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
		{losses->graphs, "graphs were launched, whose kernels are not measured"},
	};

	printf("; %" PRIu64 " kernels, %" PRIu64 " samples, %" PRIu64 " samples lost",
	       losses->kernels, losses->samples, losses->lost);
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
