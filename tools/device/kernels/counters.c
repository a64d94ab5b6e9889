/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tools/base/containers/array.h"

/* Larger numbers mean a damaged recording. */
enum { LAUNCHES_MAX = 1 << 20, DEVICES_MAX = 64 };

const char *torsh_counter_mode_name(uint32_t mode)
{
	static const char *const names[] = {[COUNTERS_OFF] = "off",
					    [COUNTERS_OF_OPERATORS] = "operators",
					    [COUNTERS_OF_TIMELINE] = "timeline"};

	return mode < sizeof(names) / sizeof(*names) ? names[mode] : "?";
}

const char *torsh_counter_aggregate_name(enum counter_aggregate aggregate)
{
	static const char *const names[] = {
		[COUNTER_SUM] = "sum", [COUNTER_MEAN] = "mean", [COUNTER_MAX] = "max"};

	return (unsigned)aggregate < sizeof(names) / sizeof(*names) ? names[aggregate] : "?";
}

void torsh_counters_create(struct counters *counters)
{
	*counters = (struct counters){0};
}

void torsh_counters_destroy(struct counters *counters)
{
	for (size_t i = 0; i < counters->n; i++) {
		struct counter_process *process = &counters->processes[i];

		free(process->devices);
		free(process->kernels);
		free(process->launches);
		torsh_key_index_destroy(&process->by_correlation);
		torsh_key_index_destroy(&process->by_shape);
	}
	free(counters->processes);
}

static struct counter_process *find_process(const struct counters *counters,
					    const struct recorded_process *process)
{
	for (size_t i = 0; i < counters->n; i++)
		if (counters->processes[i].process == process)
			return &counters->processes[i];
	return NULL;
}

const struct counter_process *torsh_counters_process(const struct counters *counters,
						     const struct recorded_process *process)
{
	return find_process(counters, process);
}

static struct counter_process *need_process(struct counters *counters,
					    const struct recorded_process *process)
{
	struct counter_process *found = find_process(counters, process);

	if (found)
		return found;
	counters->processes = torsh_array_reserve(counters->processes, counters->n,
						  &counters->n_room, sizeof(*counters->processes));
	found = &counters->processes[counters->n++];
	*found = (struct counter_process){.process = process};
	torsh_key_index_create(&found->by_correlation);
	torsh_key_index_create(&found->by_shape);
	return found;
}

static struct counter_device *find_device(const struct counter_process *process, uint32_t device)
{
	for (size_t i = 0; i < process->n_devices; i++)
		if (process->devices[i].device == device)
			return &process->devices[i];
	return NULL;
}

/* NULL: there are too many devices. */
static struct counter_device *need_device(struct counter_process *process, uint32_t device)
{
	struct counter_device *found = find_device(process, device);

	if (found || process->n_devices == DEVICES_MAX)
		return found;
	process->devices = torsh_array_reserve(process->devices, process->n_devices,
					       &process->devices_room, sizeof(*process->devices));
	found = &process->devices[process->n_devices++];
	*found = (struct counter_device){.device = device};
	return found;
}

const struct counter_metric *torsh_counters_metric(const struct counter_process *process,
						   uint32_t device, uint32_t i)
{
	static const struct counter_metric none;
	const struct counter_device *found = find_device(process, device);

	return found && i < COUNTERS_A_DEVICE ? &found->metrics[i] : &none;
}

static void see_mode(struct counter_process *process, const struct event_counter_mode *mode)
{
	struct counter_device *device = need_device(process, mode->device);

	if (device)
		device->mode = *mode;
}

static void see_metric(struct counter_process *process, const struct event_counter_metric *metric)
{
	struct counter_device *device = need_device(process, metric->device);

	if (!device || metric->number / COUNTERS_A_DEVICE != metric->device)
		return;
	device->metrics[metric->number % COUNTERS_A_DEVICE] = (struct counter_metric){
		.name = torsh_timeline_label(process->process, metric->name),
		.field = torsh_timeline_label(process->process, metric->field),
		.field_label = metric->field,
		.unit = torsh_timeline_label(process->process, metric->unit),
		.aggregate = (enum counter_aggregate)metric->aggregate,
	};
}

/*
 * Returns a hash of the launch parameters, never 0. Other parameters may have the same hash.
 * Labels are equal if their texts are.
 */
static uint64_t key_of_shape(uint32_t name, const uint32_t grid[3], const uint32_t block[3],
			     uint32_t shared_bytes)
{
	const uint32_t words[] = {name,	    grid[0],  grid[1],	grid[2],
				  block[0], block[1], block[2], shared_bytes};

	return XXH64(words, sizeof(words), 0) | 1;
}

#define KEY_OF(launch)                                                                             \
	key_of_shape((launch)->name,                                                               \
		     (const uint32_t[3]){(launch)->grid_x, (launch)->grid_y, (launch)->grid_z},    \
		     (const uint32_t[3]){(launch)->block_x, (launch)->block_y, (launch)->block_z}, \
		     (launch)->dynamic_shared_bytes)

static void see_launch(struct counter_process *process, const struct event_counter_launch *launch)
{
	struct key_slot *slot;

	if (launch->number >= LAUNCHES_MAX)
		return;
	while (process->n_launches <= launch->number) {
		process->launches =
			torsh_array_reserve(process->launches, process->n_launches,
					    &process->launches_room, sizeof(*process->launches));
		process->launches[process->n_launches++] = (struct counter_launch){0};
	}
	process->launches[launch->number].like = *launch;
	slot = torsh_key_index_find(&process->by_shape, KEY_OF(launch));
	if (!slot->key)
		torsh_key_index_fill(&process->by_shape, slot, KEY_OF(launch), launch->number);
}

/* Returns the kernel with that correlation id, and creates it at its first value. */
static struct counter_kernel *need_kernel(struct counter_process *process,
					  const struct event_counter_range *range)
{
	struct key_slot *slot =
		torsh_key_index_find(&process->by_correlation, (uint64_t)range->correlation + 1);
	struct counter_kernel *kernel;

	if (slot->key)
		return &process->kernels[slot->number];
	process->kernels = torsh_array_reserve(process->kernels, process->n_kernels,
					       &process->kernels_room, sizeof(*process->kernels));
	kernel = &process->kernels[process->n_kernels];
	*kernel = (struct counter_kernel){
		.correlation = range->correlation,
		.launch = range->launch,
		.device = range->device,
		.context = range->context,
	};
	for (uint32_t i = 0; i < COUNTERS_A_DEVICE; i++)
		kernel->values[i] = NAN;
	torsh_key_index_fill(&process->by_correlation, slot, (uint64_t)range->correlation + 1,
			     (uint32_t)process->n_kernels++);
	if (range->launch < process->n_launches)
		process->launches[range->launch].n_kernels++;
	return kernel;
}

uint32_t torsh_counters_values(uint32_t n, const uint64_t *fields, double *values)
{
	n = n < COUNTER_VALUES ? n : COUNTER_VALUES;
	memcpy(values, fields, n * sizeof(*values));
	return n;
}

size_t torsh_counters_points(const struct counters *counters,
			     const struct recorded_process *process,
			     const struct event_counter_sample *sample,
			     struct counter_point points[COUNTER_VALUES])
{
	const struct counter_process *seen = find_process(counters, process);
	double values[COUNTER_VALUES];
	uint32_t n_values = torsh_counters_values(sample->n, &sample->value_0, values);
	size_t n = 0;

	for (uint32_t i = 0; seen && i < n_values; i++) {
		uint32_t number = sample->first % COUNTERS_A_DEVICE + i;
		const struct counter_metric *metric =
			torsh_counters_metric(seen, sample->device, number);

		/* Some viewers hang on infinite numbers. */
		if (metric->field && isfinite(values[i]))
			points[n++] = (struct counter_point){
				.metric = metric,
				.key = (uint64_t)sample->device * COUNTERS_A_DEVICE + number,
				.value = values[i],
			};
	}
	return n;
}

static void see_range(struct counter_process *process, const struct event_counter_range *range)
{
	struct counter_kernel *kernel = need_kernel(process, range);
	double values[COUNTER_VALUES];
	uint32_t n = torsh_counters_values(range->n, &range->value_0, values);

	for (uint32_t i = 0; i < n; i++)
		if (range->first / COUNTERS_A_DEVICE == kernel->device &&
		    range->first % COUNTERS_A_DEVICE + i < COUNTERS_A_DEVICE)
			kernel->values[range->first % COUNTERS_A_DEVICE + i] = values[i];
}

void torsh_counters_see(struct counters *counters, const struct recorded_process *process,
			const struct event *event)
{
	struct counter_process *seen;

	if (event->id < EVENT_COUNTER_MODE || event->id > EVENT_COUNTER_LOSS)
		return;
	seen = need_process(counters, process);
	switch (event->id) {
	case EVENT_COUNTER_MODE:
		see_mode(seen, &event->counter_mode);
		return;
	case EVENT_COUNTER_METRIC:
		see_metric(seen, &event->counter_metric);
		return;
	case EVENT_COUNTER_LAUNCH:
		see_launch(seen, &event->counter_launch);
		return;
	case EVENT_COUNTER_RANGE:
		see_range(seen, &event->counter_range);
		return;
	case EVENT_COUNTER_LOSS:
		seen->losses = event->counter_loss;
		seen->has_losses = true;
		return;
	default:
		return;
	}
}

const struct counter_kernel *torsh_counters_kernel(const struct counter_process *process,
						   uint32_t correlation, uint32_t graph)
{
	const struct key_slot *slot;

	if (!process || !correlation || graph)
		return NULL;
	slot = torsh_key_index_find(&process->by_correlation, (uint64_t)correlation + 1);
	return slot->key ? &process->kernels[slot->number] : NULL;
}

int torsh_counters_launch(const struct counter_process *process, const struct event_kernel *kernel)
{
	const struct key_slot *slot =
		process ? torsh_key_index_find(&process->by_shape, KEY_OF(kernel)) : NULL;
	const struct counter_launch *launch =
		slot && slot->key ? &process->launches[slot->number] : NULL;

	if (!launch || !launch->n_kernels || launch->like.name != kernel->name)
		return -1;
	return (int)slot->number;
}

#undef KEY_OF
