/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh peak --device: the process and the place of the highest peak, and what held memory then. */
#include <string.h>

#include "tools/command/peak/peak_view.h"

/* Returns the peak of a process in one place, or in all. */
static struct peak device_peak(const struct device_process *process, size_t place)
{
	const struct device_location *seen;

	if (place == DEVICE_NO_PLACE)
		return (struct peak){
			.process = process->process,
			.is_known = process->joint.is_known,
			.bytes = process->joint.bytes,
			.at_ns = process->joint.at.at_ns,
		};
	seen = &process->places[place];
	return (struct peak){
		.process = process->process,
		.is_known = true,
		.bytes = seen->peak_bytes,
		.blocks = seen->peak_n,
		.at_ns = seen->peak.at_ns,
	};
}

struct peak torsh_peak_view_of(const struct peak_view *view, size_t i)
{
	const struct recorded_process *process = view->reading->processes[i];
	const struct device_process *of;
	size_t place;

	if (!view->device.name)
		return (struct peak){
			.is_known = torsh_recording_has_heap(process),
			.bytes = process->heap.peak_bytes,
			.blocks = process->heap.peak_blocks,
			.at_ns = process->heap.peak_ns,
		};
	of = &view->device.reading.memory.items[i];
	place = view->device.is_all ? DEVICE_NO_PLACE : torsh_device_place(of, view->device.name);
	if (!view->device.is_all && place == DEVICE_NO_PLACE)
		return (struct peak){.is_known = false};
	return device_peak(of, place);
}

const char *torsh_peak_device_shared(const struct device_view *device)
{
	return device->is_all ? NULL : device->name;
}

void torsh_peak_device_choose(struct peak_view *view)
{
	struct device_view *device = &view->device;
	const struct memory_of_devices *memory = &device->reading.memory;
	struct peak highest = {0};

	device->is_all = strcmp(device->name, "all") == 0;
	torsh_device_reading_open(&device->reading, view->reading);
	torsh_shared_devices_find(&device->shared, memory);
	for (size_t i = 0; i < memory->n; i++) {
		struct peak peak = torsh_peak_view_of(view, i);

		if (!peak.is_known || (highest.is_known && peak.bytes <= highest.bytes))
			continue;
		highest = peak;
		device->process = &memory->items[i];
	}
	if (!device->process)
		torsh_device_refuse(memory, device->name);
	device->place = device->is_all ? DEVICE_NO_PLACE
				       : torsh_device_place(device->process, device->name);
	view->peak = highest;
}

void torsh_peak_device_close(struct device_view *device)
{
	if (device->has_owners)
		torsh_device_owners_free(&device->owners);
	torsh_shared_devices_free(&device->shared);
	torsh_device_reading_close(&device->reading);
}

static void collect_owners(struct peak_view *view)
{
	struct device_view *device = &view->device;
	const struct device_blocks *blocks = &device->process->blocks;

	device->has_owners = !device->is_all && blocks->scopes[device->place].kind == SCOPE_CUDA &&
			     blocks->scopes[device->place].device != DEVICE_NOT_KNOWN;
	if (!device->has_owners)
		return;
	torsh_device_owners_collect(&device->owners, &(struct owners_request){
							     .memory = &device->reading.memory,
							     .process = device->process,
							     .place = device->place,
							     .at = device->at,
							     .symbols = view->reading->symbols,
						     });
}

void torsh_peak_device_collect(struct peak_view *view)
{
	const struct device_view *device = &view->device;
	const struct device_moment *moment =
		device->is_all ? &device->process->joint.at : &device->at;

	torsh_device_memory_at(&view->heap, &device->reading.memory, device->process, device->place,
			       moment);
	collect_owners(view);
}
