/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh peak as JSON; schema: tools/schema/peak.json. */
#include "tools/command/peak/peak_census.h"
#include "tools/command/peak/peak_view.h"
#include "tools/report/device_refusals_report.h"
#include "tools/report/owners/owners_report.h"
#include "tools/report/parts.h"

static void emit_mappings(struct json_writer *json, const struct peak_view *view)
{
	const struct recorded_vm *vm = &view->mapper->vm;

	torsh_json_begin_object(json, "mappings");
	torsh_json_put_u64(json, "pid", view->mapper->pid);
	torsh_json_put_known(json, "peak_bytes", vm->is_there, vm->peak_bytes);
	torsh_json_put_known(json, "at_ns", vm->is_there, vm->peak_ns);
	torsh_json_put_known(json, "current_bytes", vm->is_there, vm->current_bytes);
	torsh_json_put_known(json, "advised_bytes", vm->is_there, vm->advised_bytes);
	torsh_json_put_known(json, "arena_bytes", vm->is_there, view->arena_bytes);
	torsh_json_begin_array(json, "holders");
	for (size_t i = 0; i < view->n_mapped; i++) {
		const struct allocation_site *site = &view->mapped.items[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "bytes", site->bytes);
		torsh_parts_emit_scope(json, site);
		torsh_parts_emit_stack(json, site->frames, site->n_frames);
		torsh_json_put_u64(json, "pieces", site->blocks);
		torsh_json_put_text(json, "what", torsh_site_mapped_as(site));
		torsh_json_put_text(json, "path", torsh_site_mapped_path(site));
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_parts_emit_omitted(json, &view->mapped, view->n_mapped);
	torsh_json_end_object(json);
}

static void emit_processes(struct json_writer *json, const struct peak_view *view)
{
	static const char *const measured[] = {"peak_bytes", "peak_blocks", "at_ns",
					       "rss_peak_bytes", NULL};

	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < view->reading->n_processes; i++) {
		const struct recorded_process *process = view->reading->processes[i];
		struct peak peak = torsh_peak_view_of(view, i);

		torsh_parts_begin_process(json, process);
		torsh_json_put_known(json, "peak_bytes", peak.is_known, peak.bytes);
		torsh_json_put_known(json, "peak_blocks", peak.is_known && !view->device.is_all,
				     peak.blocks);
		torsh_json_put_known(json, "at_ns", peak.is_known, peak.at_ns);
		torsh_json_put_known(json, "rss_peak_bytes", process->has_rss_peak,
				     process->rss_peak_bytes);
		torsh_json_end_object(json);
	}
	torsh_parts_emit_unfollowed(json, view->reading->unfollowed, view->reading->n_unfollowed,
				    measured);
	torsh_json_end_array(json);
}

static void emit_rss(struct json_writer *json, const struct recorded_process *process)
{
	bool is_known = process && process->has_rss_peak;

	torsh_json_put_known(json, "rss_peak_bytes", is_known,
			     is_known ? process->rss_peak_bytes : 0);
	torsh_json_put_text(json, "rss_peak_source", process ? process->rss_peak_source : NULL);
}

static void emit_moment(struct json_writer *json, const struct peak_view *view)
{
	const struct device_view *device = &view->device;
	uint64_t blocks, bytes;

	torsh_sites_sum(&view->heap, &blocks, &bytes);
	torsh_json_begin_object(json, "moment");
	torsh_json_put_text(json, "kind", torsh_memory_moment_names[device->moment_kind]);
	torsh_json_put_u64(json, "at_ns", device->at.at_ns);
	torsh_json_put_u64(json, "bytes", bytes);
	torsh_json_end_object(json);
	if (device->has_owners)
		torsh_owners_json(json, &device->owners);
}

/* Emit members in addition to the heap report's. */
static void emit_device(struct json_writer *json, const struct peak_view *view)
{
	const struct device_view *device = &view->device;
	const struct device_process *process = device->process;

	if (!device->name)
		return;
	torsh_json_put_text(json, "device", device->name);
	torsh_device_joint_json(json, process);
	torsh_shared_devices_json(json, &device->shared, torsh_peak_device_shared(device));
	if (device->is_all)
		return;
	torsh_device_seen_json(json, process);
	torsh_device_framework_json(json, process, device->place, DEVICE_AT_PEAK);
	torsh_device_room_json(json, process, device->place, DEVICE_AT_PEAK);
	torsh_device_refusals_json(json, process, device->place, view->reading->symbols,
				   view->heap.view);
	emit_moment(json, view);
}

void torsh_peak_json(const struct peak_view *view)
{
	const struct recorded_process *process = view->peak.process;
	const struct peak *peak = &view->peak;
	struct recorded_process *one[1], *const *shown;
	size_t n_shown = torsh_peak_shown(view, one, &shown);
	uint64_t blocks, bytes;
	struct json_writer json;

	torsh_sites_sum(&view->heap, &blocks, &bytes);
	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_text(&json, "of", process ? "process" : "session");
	torsh_json_put_known(&json, "pid", process, process ? process->pid : 0);
	torsh_json_put_text(&json, "program", process ? process->program : NULL);
	torsh_json_put_known(&json, "peak_bytes", peak->is_known, peak->bytes);
	torsh_json_put_known(&json, "peak_blocks", peak->is_known && !view->device.is_all,
			     peak->blocks);
	torsh_json_put_known(&json, "at_ns", peak->is_known, peak->at_ns);
	if (process && !view->device.name)
		torsh_parts_emit_interval(&json, process->heap.sampled_every, peak->bytes,
					  peak->blocks, view->variance);
	if (peak->late_changes)
		torsh_json_put_u64(&json, "late_changes", peak->late_changes);
	emit_device(&json, view);
	emit_rss(&json, process);
	torsh_json_put_u64(&json, "attributed_bytes", bytes);
	torsh_json_begin_lines(&json, "holders");
	for (size_t i = 0; i < view->n_heap; i++)
		torsh_parts_emit_site(&json, &view->heap.items[i]);
	torsh_json_end_array(&json);
	torsh_parts_emit_omitted(&json, &view->heap, view->n_heap);
	emit_mappings(&json, view);
	torsh_peak_census_json(&json, view->device.name ? NULL : process);
	torsh_parts_emit_events(&json, shown, n_shown);
	emit_processes(&json, view);
	torsh_parts_emit_recording(&json, view->reading->recording);
	torsh_parts_emit_notes(&json, shown, n_shown);
	torsh_parts_emit_counters(&json, shown, n_shown);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}
