/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Counter values of the kernels in an operator profile. */
#include <math.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/profile/profile.h"

static struct profile_texts *texts_of(const struct profile_json *profile,
				      const struct recorded_process *process)
{
	struct profile_texts *strings = profile->strings;

	while (strings->process != process)
		strings++;
	return strings;
}

static void add_raw(struct profile_raw *raw, const char *name, const char *unit, double value)
{
	raw->items[raw->n] = (struct raw_metric){name, value};
	raw->units[raw->n++] = unit;
}

/*
 * Every kernel has threads and registers: if these are 0, the launch parameters were not recorded.
 */
static void add_launch(struct profile_raw *raw, const struct profile_work *work)
{
	if (!work->block[0] || !work->registers)
		return;
	add_raw(raw, "launch__registers_per_thread", "registers", work->registers);
	add_raw(raw, "launch__shared_mem_per_block_dynamic", "bytes", work->dynamic_bytes);
}

/*
 * Returns the measured kernel that represents those with the same launch parameters: the first
 * one. NULL: there is none.
 */
static const struct counter_kernel *find_alike(struct profile_json *profile,
					       const struct counter_process *counted,
					       const struct profile_work *work)
{
	struct profile_texts *strings = texts_of(profile, work->process);
	const struct event_kernel kernel = {
		.name = work->record.name,
		EVENT_SHAPE(work->grid, work->block),
		.dynamic_shared_bytes = work->dynamic_bytes,
	};
	int launch = torsh_counters_launch(counted, &kernel);

	if (launch < 0)
		return NULL;
	if (!strings->measured) {
		strings->measured =
			torsh_need_items(NULL, 0, counted->n_launches, sizeof(*strings->measured));
		for (size_t i = counted->n_kernels; i; i--) {
			if (counted->kernels[i - 1].launch < counted->n_launches)
				strings->measured[counted->kernels[i - 1].launch] = (uint32_t)i;
		}
	}
	return strings->measured[launch] ? &counted->kernels[strings->measured[launch] - 1] : NULL;
}

void torsh_profile_raw(struct profile_json *profile, const struct profile_work *work,
		       struct profile_raw *raw)
{
	const struct counter_process *counted =
		torsh_counters_process(&profile->counters, work->process);
	const struct counter_kernel *kernel = NULL;

	raw->n = 0;
	raw->source = METRICS_NONE;
	add_launch(raw, work);
	if (!counted || work->record.what != DEVICE_KERNEL)
		return;
	kernel = torsh_counters_kernel(counted, work->record.correlation, work->record.graph);
	if (kernel)
		raw->source = METRICS_MEASURED;
	else if ((kernel = find_alike(profile, counted, work)))
		raw->source = METRICS_PROPAGATED;
	for (uint32_t i = 0; kernel && i < COUNTERS_A_DEVICE; i++) {
		const struct counter_metric *metric =
			torsh_counters_metric(counted, kernel->device, i);

		if (metric->name && isfinite(kernel->values[i]))
			add_raw(raw, metric->name, metric->unit, kernel->values[i]);
	}
}

struct event_counter_mode torsh_profile_counter_mode(const struct profile_json *profile,
						     const struct recorded_process *process)
{
	const struct counter_process *counted = torsh_counters_process(&profile->counters, process);
	struct event_counter_mode mode = {.mode = COUNTERS_OFF};

	/* A device's own mode is more specific than that of all devices. */
	for (size_t i = 0; counted && i < counted->n_devices; i++) {
		if (!i || counted->devices[i].device != COUNTER_ALL_DEVICES)
			mode = counted->devices[i].mode;
	}
	return mode;
}

const char *torsh_profile_uncounted_work(const struct profile_json *profile,
					 const struct profile_work *work)
{
	struct event_counter_mode mode = torsh_profile_counter_mode(profile, work->process);

	if (mode.mode == COUNTERS_OF_OPERATORS && !mode.reason && work->record.graph)
		return COUNTERS_NOT_OF_GRAPHS;
	return torsh_profile_uncounted(profile, work->process);
}

const char *torsh_profile_uncounted(const struct profile_json *profile,
				    const struct recorded_process *process)
{
	struct event_counter_mode mode = torsh_profile_counter_mode(profile, process);
	const char *reason = torsh_timeline_label(process, mode.reason);

	if (reason)
		return reason;
	if (mode.mode == COUNTERS_OF_OPERATORS)
		return "it was not measured, or not requested";
	if (mode.mode == COUNTERS_OF_TIMELINE)
		return "counters were read of the device, not of kernels";
	return "no counters were collected";
}
