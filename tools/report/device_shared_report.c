/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/device_shared_report.h"

#include <inttypes.h>

#include "tools/base/size.h"

#define PARTS_SHOWN 12u

static const char *name_of(const struct device_part *part, char *out)
{
	return torsh_device_scope_name(&part->process->blocks.scopes[part->place], out);
}

static uint64_t own_peak(const struct device_part *part)
{
	return part->process->places[part->place].peak_bytes;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static cJSON *make_part(const struct device_part *part)
{
	char name[DEVICE_SCOPE_NAME_BYTES];
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "pid", torsh_json_u64(part->process->process->pid));
	torsh_json_set(object, "device", torsh_json_text(name_of(part, name)));
	torsh_json_set(object, "bytes", torsh_json_u64(part->bytes));
	torsh_json_set(object, "peak_bytes", torsh_json_u64(own_peak(part)));
	return object;
}

cJSON *torsh_shared_devices_json(const struct shared_devices *shared, const char *name)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < shared->n; i++) {
		const struct shared_device *device = &shared->items[i];
		cJSON *object, *processes;

		if (!torsh_shared_device_is_called(device, name))
			continue;
		object = torsh_json_object();
		processes = torsh_json_list();
		for (size_t k = 0; k < device->n_parts; k++)
			torsh_json_add(processes, make_part(&device->parts[k]));
		torsh_json_set(object, "uuid", torsh_json_text(device->uuid));
		torsh_json_set(object, "identified_by",
			       torsh_json_text(device->uuid ? "uuid" : "number"));
		torsh_json_set(object, "peak_bytes", torsh_json_u64(device->peak_bytes));
		torsh_json_set(object, "at_ns", torsh_json_u64(device->peak_ns));
		torsh_json_set(object, "processes", processes);
		torsh_json_add(list, object);
	}
	return list;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_part(FILE *out, const struct device_part *part)
{
	const struct recorded_process *process = part->process->process;
	char name[DEVICE_SCOPE_NAME_BYTES], bytes[SIZE_TEXT_BYTES], own[SIZE_TEXT_BYTES];

	fprintf(out, "  %10s  %s (pid %" PRIu32 "), whose own peak of %s was %s\n",
		torsh_size_human(part->bytes, bytes), torsh_recording_program_name(process),
		process->pid, name_of(part, name), torsh_size_human(own_peak(part), own));
}

static void print_device(FILE *out, const struct shared_device *device)
{
	char name[DEVICE_SCOPE_NAME_BYTES], bytes[SIZE_TEXT_BYTES], at[SIZE_TEXT_BYTES];
	size_t n_shown = 0, n_holding = 0;

	if (device->uuid)
		fprintf(out, "%s", device->uuid);
	else
		fprintf(out, "%s, the same device by its number alone,",
			name_of(&device->parts[0], name));
	fprintf(out,
		" was used by %zu processes, which together had most of it %s after the session's start: %s\n",
		device->n_parts, torsh_size_duration(device->peak_ns, at),
		torsh_size_exact(device->peak_bytes, bytes));
	for (size_t i = 0; i < device->n_parts; i++) {
		if (!device->parts[i].bytes)
			continue;
		n_holding++;
		if (n_shown == PARTS_SHOWN)
			continue;
		print_part(out, &device->parts[i]);
		n_shown++;
	}
	if (n_holding > n_shown)
		fprintf(out, "  ... and %zu more\n", n_holding - n_shown);
}

void torsh_shared_devices_text(FILE *out, const struct shared_devices *shared, const char *name)
{
	for (size_t i = 0; i < shared->n; i++) {
		if (torsh_shared_device_is_called(&shared->items[i], name))
			print_device(out, &shared->items[i]);
	}
}
