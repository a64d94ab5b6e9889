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

static void emit_part(struct json_writer *json, const struct device_part *part)
{
	char name[DEVICE_SCOPE_NAME_BYTES];

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", part->process->process->pid);
	torsh_json_put_text(json, "device", name_of(part, name));
	torsh_json_put_u64(json, "bytes", part->bytes);
	torsh_json_put_u64(json, "peak_bytes", own_peak(part));
	torsh_json_end_object(json);
}

void torsh_shared_devices_json(struct json_writer *json, const struct shared_devices *shared,
			       const char *name)
{
	torsh_json_begin_array(json, "shared");
	for (size_t i = 0; i < shared->n; i++) {
		const struct shared_device *device = &shared->items[i];

		if (!torsh_shared_device_is_called(device, name))
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "uuid", device->uuid);
		torsh_json_put_text(json, "identified_by", device->uuid ? "uuid" : "number");
		torsh_json_put_u64(json, "peak_bytes", device->peak_bytes);
		torsh_json_put_u64(json, "at_ns", device->peak_ns);
		torsh_json_begin_array(json, "processes");
		for (size_t k = 0; k < device->n_parts; k++)
			emit_part(json, &device->parts[k]);
		torsh_json_end_array(json);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
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
