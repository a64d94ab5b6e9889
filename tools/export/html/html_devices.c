/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/device/owners/device_owners.h"
#include "tools/export/html/html_page.h"

struct html_devices {
	struct memory_of_devices memory;
};

void torsh_html_devices_collect(struct html_page *page)
{
	const struct trace *trace = page->trace;

	page->devices = torsh_need(calloc(1, sizeof(*page->devices)));
	torsh_device_memory_collect(&page->devices->memory, trace->recording, trace->processes,
				    trace->n_processes, trace->prepass);
}

void torsh_html_devices_free(struct html_page *page)
{
	torsh_device_memory_free(&page->devices->memory);
	free(page->devices);
}

/* Put a device's reported properties. */
static void put_device(struct html_page *page, size_t process, const struct event_device *device)
{
	const struct recorded_process *of = page->trace->processes[process];
	struct json_writer *json = &page->json;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "process", process);
	torsh_json_put_u64(json, "device", device->device);
	torsh_html_put_text(page, "name", torsh_timeline_label(of, device->name));
	torsh_html_put_text(page, "uuid", torsh_timeline_label(of, device->uuid));
	torsh_json_put_format(json, "capability", "%u.%u", device->capability_major,
			      device->capability_minor);
	torsh_json_put_u64(json, "memory_bytes", device->memory_bytes);
	torsh_json_put_u64(json, "bandwidth", device->memory_bandwidth);
	torsh_json_put_u64(json, "multiprocessors", device->multiprocessors);
	torsh_json_put_u64(json, "clock_khz", device->clock_khz);
	torsh_html_device_work_put(page, process, device->device);
	torsh_json_end_object(json);
}

/* Memory of a process in a place: [process, place, peak, when, at the end, tensors at the peak] */
static void put_place(struct html_page *page, size_t process, const struct device_process *of,
		      size_t place)
{
	const struct device_scope *scope = &of->blocks.scopes[place];
	const struct device_location *location = &of->places[place];
	struct json_writer *json = &page->json;
	char name[DEVICE_SCOPE_NAME_BYTES];

	torsh_json_begin_array(json, NULL);
	torsh_json_put_u64(json, NULL, process);
	torsh_html_put_text(page, NULL, torsh_device_scope_name(scope, name));
	torsh_json_put_u64(json, NULL, location->peak_bytes);
	torsh_json_put_u64(json, NULL, location->peak.at_ns);
	torsh_json_put_u64(json, NULL, scope->bytes);
	torsh_json_put_u64(json, NULL, location->peak_tensor_bytes);
	torsh_json_put_u64(json, NULL, scope->allocs);
	torsh_json_end_array(json);
}

/*
 * The owners of a device's memory at its peak, by kind: [process, place, kind, bytes, bytes of
 * all].
 */
static void put_owners(struct html_page *page, size_t process, size_t place)
{
	const struct device_process *of = &page->devices->memory.items[process];
	const struct device_scope *scope = &of->blocks.scopes[place];
	struct json_writer *json = &page->json;
	char name[DEVICE_SCOPE_NAME_BYTES];
	struct device_owners owners;

	if (scope->kind != SCOPE_CUDA || scope->device == DEVICE_NOT_KNOWN ||
	    !of->places[place].peak_bytes)
		return;
	torsh_device_owners_collect(&owners, &(struct owners_request){
						     .memory = &page->devices->memory,
						     .process = of,
						     .place = place,
						     .at = of->places[place].peak,
						     .symbols = page->trace->symbols,
					     });
	for (int kind = 0; kind < N_OWNER_KINDS; kind++) {
		int64_t bytes = torsh_device_owners_sum(&owners, (enum owner_kind)kind);

		if (!bytes)
			continue;
		torsh_json_begin_array(json, NULL);
		torsh_json_put_u64(json, NULL, process);
		torsh_html_put_text(page, NULL, torsh_device_scope_name(scope, name));
		torsh_html_put_text(page, NULL, torsh_owner_texts[kind]);
		torsh_json_put_i64(json, NULL, bytes);
		torsh_json_put_u64(json, NULL,
				   owners.has_driver ? owners.driver_bytes : owners.live_bytes);
		torsh_json_end_array(json);
	}
	torsh_device_owners_free(&owners);
}

static void put_mode(struct html_page *page, size_t process)
{
	const struct device_process *of = &page->devices->memory.items[process];
	struct json_writer *json = &page->json;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "process", process);
	torsh_json_put_u64(json, "mode", of->mode.mode);
	torsh_html_put_text(page, "reason", torsh_timeline_label(of->process, of->mode.reason));
	torsh_json_end_object(json);
}

void torsh_html_devices_put(struct html_page *page)
{
	const struct memory_of_devices *memory = &page->devices->memory;
	const struct prepass *prepass = page->trace->prepass;
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, "devices");
	for (size_t i = 0; i < page->trace->n_processes; i++) {
		for (size_t k = 0; k < prepass->items[i].devices.n; k++)
			put_device(page, i, &prepass->items[i].devices.items[k]);
	}
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "device_memory");
	for (size_t i = 0; i < memory->n; i++) {
		for (size_t k = 0; k < memory->items[i].n_places; k++)
			put_place(page, i, &memory->items[i], k);
	}
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "device_owners");
	for (size_t i = 0; i < memory->n && page->trace->symbols; i++) {
		for (size_t k = 0; k < memory->items[i].n_places; k++)
			put_owners(page, i, k);
	}
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "device_modes");
	for (size_t i = 0; i < memory->n; i++) {
		if (memory->items[i].has_mode)
			put_mode(page, i);
	}
	torsh_json_end_array(json);
}
