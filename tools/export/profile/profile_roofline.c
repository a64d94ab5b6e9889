/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The roofline positions of the operators of an operator profile, and how their time divides
 * between devices.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/device/kernels/device_peaks.h"
#include "tools/export/profile/profile.h"

/* NULL: it ran on one device, which is set in *device. */
static const char *find_device(const struct profile_json *profile,
			       const struct profile_operator *op, uint32_t *device)
{
	*device = profile->work[profile->order[op->first]].record.device;
	for (size_t i = 1; i < op->n; i++) {
		if (profile->work[profile->order[op->first + i]].record.device != *device)
			return "it ran on several devices";
	}
	return NULL;
}

/* Returns NULL, or why it is unknown. */
static const char *find_roofline(const struct profile_json *profile,
				 const struct profile_operator *op, const struct kernel_sums *sums,
				 const struct flops *flops, struct roofline *roofline)
{
	enum tensor_use tensor_use = torsh_metrics_tensor_use(sums);
	struct device_peaks peaks;
	double read, written;
	uint32_t device;
	const char *reason;

	if (!torsh_metrics_value(sums, METRIC_DRAM_READ, &read) ||
	    !torsh_metrics_value(sums, METRIC_DRAM_WRITTEN, &written))
		return "the bytes that it moved were not counted";
	if (flops->status != FLOPS_COUNTED)
		return "its FLOPs are not known";
	reason = find_device(profile, op, &device);
	if (!reason)
		reason = torsh_device_peaks(torsh_profile_device(profile, op->process, device),
					    &peaks);
	if (reason)
		return reason;
	if (!torsh_roofline_of((double)flops->all, read + written, sums->total_ns, peaks.gflops,
			       peaks.gb_per_s, roofline))
		return "it took no time, or moved nothing";
	/* An operator that is memory-bound without tensor cores is also memory-bound with them. */
	if (roofline->is_compute_bound && tensor_use == TENSOR_CORES_USED)
		return "it used tensor cores, and the device does not report their speed";
	if (roofline->is_compute_bound && tensor_use == TENSOR_CORES_UNKNOWN)
		return "whether it used tensor cores was not counted";
	return NULL;
}

static struct device_bounds *find_bounds(struct profile_json *profile,
					 const struct recorded_process *process, uint32_t device)
{
	struct device_bounds *made;

	for (size_t i = 0; i < profile->n_bounds; i++) {
		if (profile->bounds[i].process == process && profile->bounds[i].device == device)
			return &profile->bounds[i];
	}
	profile->bounds = torsh_array_reserve(profile->bounds, profile->n_bounds,
					      &profile->bounds_room, sizeof(*profile->bounds));
	made = &profile->bounds[profile->n_bounds++];
	made->process = process;
	made->device = device;
	return made;
}

static void add_unbound(struct profile_json *profile, const char *reason, uint64_t ns)
{
	size_t i = 0;

	while (i < profile->n_unbound && strcmp(profile->unbound[i].reason, reason) != 0)
		i++;
	if (i == profile->n_unbound) {
		profile->unbound =
			torsh_array_reserve(profile->unbound, profile->n_unbound,
					    &profile->unbound_room, sizeof(*profile->unbound));
		profile->unbound[profile->n_unbound++].reason = reason;
	}
	profile->unbound[i].operators++;
	profile->unbound[i].ns += ns;
}

static void add_kernels(struct profile_json *profile, const uint32_t *order, size_t n,
			enum operator_bound bound)
{
	for (size_t i = 0; i < n; i++) {
		const struct profile_work *work = &profile->work[order[i]];

		if (work->record.what == DEVICE_KERNEL)
			find_bounds(profile, work->process, work->record.device)->ns[bound] +=
				work->record.duration_ns;
	}
}

struct operator_roofline torsh_profile_bind(struct profile_json *profile,
					    const struct profile_operator *op,
					    const struct kernel_sums *sums,
					    const struct flops *flops)
{
	struct operator_roofline found = {.bound = BOUND_UNKNOWN};

	found.reason = find_roofline(profile, op, sums, flops, &found.roofline);
	if (!found.reason)
		found.bound =
			found.roofline.is_compute_bound ? BOUND_BY_COMPUTING : BOUND_BY_MEMORY;
	add_kernels(profile, profile->order + op->first, op->n, found.bound);
	if (found.reason && sums->n_kernels)
		add_unbound(profile, found.reason, sums->total_ns);
	return found;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_device(struct profile_json *profile, const struct device_bounds *bounds)
{
	const struct event_device *device =
		torsh_profile_device(profile, bounds->process, bounds->device);
	/* torsh_json_put_double writes NAN as null. */
	struct device_peaks peaks = {.gflops = NAN, .gb_per_s = NAN, .ridge = NAN};
	const char *reason = torsh_device_peaks(device, &peaks);
	struct json_writer *json = &profile->json;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", bounds->process->pid);
	torsh_json_put_u64(json, "device_id", bounds->device);
	torsh_json_put_text(json, "device_name",
			    device ? torsh_timeline_label(bounds->process, device->name) : NULL);
	torsh_json_put_double(json, "peak_gflops", peaks.gflops);
	torsh_json_put_text(json, "peak_gflops_source", reason ? NULL : PEAK_GFLOPS_SOURCE);
	torsh_json_put_double(json, "peak_gb_per_s", peaks.gb_per_s);
	torsh_json_put_text(json, "peak_gb_per_s_source", reason ? NULL : PEAK_BANDWIDTH_SOURCE);
	torsh_json_put_double(json, "ridge_flop_per_byte", peaks.ridge);
	torsh_json_put_text(json, "reason", reason);
	torsh_json_put_u64(json, "memory_bound_ns", bounds->ns[BOUND_BY_MEMORY]);
	torsh_json_put_u64(json, "compute_bound_ns", bounds->ns[BOUND_BY_COMPUTING]);
	torsh_json_put_u64(json, "unknown_ns", bounds->ns[BOUND_UNKNOWN]);
	torsh_json_end_object(json);
}

static void put_unbound(struct json_writer *json, const char *reason, uint64_t n_operators,
			uint64_t total_ns)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "reason", reason);
	torsh_json_put_u64(json, "operators", n_operators);
	torsh_json_put_u64(json, "total_ns", total_ns);
	torsh_json_end_object(json);
}

void torsh_profile_put_roofline(struct profile_json *profile)
{
	const uint32_t *unattributed = profile->order + profile->n_work - profile->n_unattributed;
	struct json_writer *json = &profile->json;
	uint64_t without_operator_ns = 0;

	add_kernels(profile, unattributed, profile->n_unattributed, BOUND_UNKNOWN);
	for (size_t i = 0; i < profile->n_unattributed; i++) {
		const struct activity_record *record = &profile->work[unattributed[i]].record;

		without_operator_ns += record->what == DEVICE_KERNEL ? record->duration_ns : 0;
	}
	torsh_json_begin_object(json, "roofline");
	torsh_json_begin_array(json, "devices");
	for (size_t i = 0; i < profile->n_bounds; i++)
		put_device(profile, &profile->bounds[i]);
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "unknown");
	for (size_t i = 0; i < profile->n_unbound; i++)
		put_unbound(json, profile->unbound[i].reason, profile->unbound[i].operators,
			    profile->unbound[i].ns);
	if (without_operator_ns)
		put_unbound(json, "kernels without an operator", 0, without_operator_ns);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}
