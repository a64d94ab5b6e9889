/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/overview_devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/size.h"
#include "tools/report/device_mode.h"
#include "tools/report/device_shared_report.h"
#include "tools/report/owners/owners_report.h"
#include "tools/report/text.h"

#define GROUPS_SHOWN 5

static int compare_groups(const void *a, const void *b)
{
	const struct kernel_group *x = a, *y = b;
	int rc = (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);

	if (rc == 0)
		rc = (x->calls < y->calls) - (x->calls > y->calls);
	return rc ? rc : strcmp(x->rows->name, y->rows->name);
}

/* Find the device and process with the highest peak. */
static void find_highest(struct overview_devices *devices)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < devices->memory.n; i++) {
		const struct device_process *process = &devices->memory.items[i];

		for (size_t k = 0; k < process->n_places; k++) {
			const struct device_scope *scope = &process->blocks.scopes[k];

			if (scope->kind != SCOPE_CUDA || scope->device == DEVICE_NOT_KNOWN ||
			    process->places[k].peak_bytes <= bytes)
				continue;
			bytes = process->places[k].peak_bytes;
			devices->owned_by = process;
			devices->owned_place = k;
		}
	}
}

void torsh_overview_devices_collect(struct overview_devices *devices,
				    const struct recording *recording,
				    struct recorded_process *const *processes, size_t n_processes,
				    const struct prepass *prepass, struct symbols *symbols)
{
	*devices = (struct overview_devices){.prepass = prepass};
	for (size_t i = 0; i < prepass->n; i++) {
		const struct device_work *work = &prepass->items[i].work;

		devices->are_there = devices->are_there || work->is_reported || work->n_spans;
	}
	if (!devices->are_there)
		return;
	torsh_kernels_collect(&devices->kernels, recording, processes, n_processes, prepass);
	devices->groups = torsh_kernel_groups_make(&devices->kernels, &devices->n_groups);
	qsort(devices->groups, devices->n_groups, sizeof(*devices->groups), compare_groups);
	torsh_device_memory_collect(&devices->memory, recording, processes, n_processes, prepass);
	torsh_shared_devices_find(&devices->shared, &devices->memory);
	find_highest(devices);
	if (devices->owned_by)
		torsh_device_owners_collect(
			&devices->owners,
			&(struct owners_request){
				.memory = &devices->memory,
				.process = devices->owned_by,
				.place = devices->owned_place,
				.at = devices->owned_by->places[devices->owned_place].peak,
				.symbols = symbols,
			});
}

void torsh_overview_devices_free(struct overview_devices *devices)
{
	if (!devices->are_there)
		return;
	if (devices->owned_by)
		torsh_device_owners_free(&devices->owners);
	torsh_shared_devices_free(&devices->shared);
	torsh_device_memory_free(&devices->memory);
	free(devices->groups);
	torsh_kernels_free(&devices->kernels);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_heading(const struct overview_devices *devices)
{
	const struct kernels *kernels = &devices->kernels;
	char total[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];

	putchar('\n');
	if (!devices->n_groups)
		torsh_text_heading(stdout, "Devices: none was seen at work");
	else if (torsh_prepass_has_operators(devices->prepass))
		torsh_text_heading(
			stdout, "Devices: %s of kernels, copies and memsets, %s of it in operators",
			torsh_size_duration(kernels->total_ns, total),
			torsh_size_percent(torsh_kernels_share(kernels), 1, share));
	else
		torsh_text_heading(stdout, "Devices: %s of kernels, copies and memsets",
				   torsh_size_duration(kernels->total_ns, total));
}

static void print_group(const struct overview_devices *devices, const struct kernel_group *group,
			struct symbols *symbols)
{
	uint64_t all_ns = devices->kernels.total_ns;
	const struct kernel_row *row = group->rows;
	char text[SIZE_TEXT_BYTES];

	torsh_text_cell(stdout, torsh_size_grouped(group->calls, text));
	torsh_text_cell(stdout, group->timed ? torsh_size_duration(group->total_ns, text) : "-");
	printf(" %6s%s", torsh_size_percent((double)group->total_ns, (double)all_ns, text),
	       row->what == DEVICE_COPY ? "  copy " : "  ");
	torsh_text_function(stdout, row->what == DEVICE_KERNEL
					    ? torsh_symbols_demangle(symbols, row->name)
					    : row->name);
	putchar('\n');
}

static void print_place(const struct device_process *process, size_t place)
{
	const struct device_scope *scope = &process->blocks.scopes[place];
	char name[DEVICE_SCOPE_NAME_BYTES], peak[SIZE_TEXT_BYTES], end[SIZE_TEXT_BYTES];

	printf("pid %" PRIu32 ": of %s at most %s, %s at the end\n", process->process->pid,
	       torsh_device_scope_name(scope, name),
	       torsh_size_exact(process->places[place].peak_bytes, peak),
	       torsh_size_human(scope->bytes, end));
}

void torsh_overview_devices_text(const struct overview_devices *devices, struct symbols *symbols)
{
	if (!devices->are_there)
		return;
	print_heading(devices);
	for (size_t i = 0; i < devices->kernels.n_processes; i++)
		torsh_device_mode_text(stdout, &devices->kernels.processes[i]);
	for (size_t i = 0; i < devices->n_groups && i < GROUPS_SHOWN; i++)
		print_group(devices, &devices->groups[i], symbols);
	if (devices->n_groups > GROUPS_SHOWN)
		printf("  ... and %zu more\n", devices->n_groups - GROUPS_SHOWN);
	for (size_t i = 0; i < devices->memory.n; i++) {
		for (size_t k = 0; k < devices->memory.items[i].n_places; k++)
			print_place(&devices->memory.items[i], k);
	}
	if (devices->owned_by) {
		char name[DEVICE_SCOPE_NAME_BYTES];

		printf("at its peak pid %" PRIu32 " had of %s:\n", devices->owned_by->process->pid,
		       torsh_device_scope_name(
			       &devices->owned_by->blocks.scopes[devices->owned_place], name));
		torsh_owners_text(stdout, &devices->owners, 2);
	}
	torsh_shared_devices_text(stdout, &devices->shared, NULL);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void emit_place(struct json_writer *json, const struct device_process *process, size_t place)
{
	const struct device_scope *scope = &process->blocks.scopes[place];
	char name[DEVICE_SCOPE_NAME_BYTES];

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", process->process->pid);
	torsh_json_put_text(json, "device", torsh_device_scope_name(scope, name));
	torsh_json_put_u64(json, "peak_bytes", process->places[place].peak_bytes);
	torsh_json_put_u64(json, "current_bytes", scope->bytes);
	torsh_json_end_object(json);
}

static void emit_owners(struct json_writer *json, const struct overview_devices *devices)
{
	const struct device_owners *owners = &devices->owners;
	char name[DEVICE_SCOPE_NAME_BYTES];

	if (!devices->owned_by) {
		torsh_json_put_null(json, "owners");
		return;
	}
	torsh_json_begin_object(json, "owners");
	torsh_json_put_u64(json, "pid", devices->owned_by->process->pid);
	torsh_json_put_text(json, "device",
			    torsh_device_scope_name(
				    &devices->owned_by->blocks.scopes[devices->owned_place], name));
	torsh_json_put_u64(json, "at_ns", owners->at_ns);
	torsh_json_put_u64(json, "live_bytes", owners->live_bytes);
	torsh_json_put_known(json, "driver_bytes", owners->has_driver, owners->driver_bytes);
	torsh_owners_kinds_json(json, owners);
	torsh_json_end_object(json);
}

void torsh_overview_devices_json(struct json_writer *json, const struct overview_devices *devices)
{
	if (!devices->are_there) {
		torsh_json_put_null(json, "devices");
		return;
	}
	torsh_json_begin_object(json, "devices");
	torsh_json_put_u64(json, "total_ns", devices->kernels.total_ns);
	torsh_json_put_u64(json, "attributed_ns", devices->kernels.attributed_ns);
	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < devices->kernels.n_processes; i++) {
		if (devices->kernels.processes[i].has_mode)
			torsh_device_mode_json(json, &devices->kernels.processes[i]);
	}
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "memory");
	for (size_t i = 0; i < devices->memory.n; i++) {
		for (size_t k = 0; k < devices->memory.items[i].n_places; k++)
			emit_place(json, &devices->memory.items[i], k);
	}
	torsh_json_end_array(json);
	emit_owners(json, devices);
	torsh_shared_devices_json(json, &devices->shared, NULL);
	torsh_json_end_object(json);
}
