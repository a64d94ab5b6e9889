/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/device_mode.h"

#include <inttypes.h>

static const char *mode_name(uint32_t mode)
{
	static const char *const names[] = {[DEVICE_HOST_ONLY] = "HOST_ONLY",
					    [DEVICE_BY_EVENTS] = "EVENTS",
					    [DEVICE_BY_CUPTI] = "CUPTI"};

	return mode < sizeof(names) / sizeof(*names) ? names[mode] : "?";
}

/* Returns how devices were recorded, as text. */
static const char *mode_text(uint32_t mode)
{
	static const char *const texts[] = {[DEVICE_HOST_ONLY] = "kernels were not recorded",
					    [DEVICE_BY_EVENTS] = "devices by pairs of CUDA events",
					    [DEVICE_BY_CUPTI] = "devices by CUPTI"};

	return mode < sizeof(texts) / sizeof(*texts) ? texts[mode] : "devices by an unknown way";
}

void torsh_device_mode_json(struct json_writer *json, const struct kernel_process *process)
{
	const struct event_device_loss *losses = &process->losses;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", process->process->pid);
	torsh_json_put_text(json, "mode", mode_name(process->mode.mode));
	torsh_json_put_text(json, "reason",
			    torsh_timeline_label(process->process, process->mode.reason));
#define LOSS(field) torsh_json_put_known(json, #field, process->has_losses, losses->field);
	LOSS(records)
	torsh_json_put_known(json, "dropped", process->has_losses && !losses->is_dropping_unknown,
			     losses->dropped);
	LOSS(without_room)
	LOSS(invalid)
	LOSS(clock_width_ns)
	LOSS(clock_step_ns)
	LOSS(flushes_cut)
	LOSS(buffers_kept)
#undef LOSS
#define PAIR(field) torsh_json_put_known(json, #field, process->has_pairs, process->pairs.field);
	PAIR(resolution_ns)
	PAIR(floor_ns)
#undef PAIR
	torsh_json_end_object(json);
}

void torsh_device_mode_text(FILE *out, const struct kernel_process *process)
{
	const struct event_device_loss *losses = &process->losses;
	const char *reason = torsh_timeline_label(process->process, process->mode.reason);

	if (!process->has_mode)
		return;
	fprintf(out, "pid %" PRIu32 ": %s%s%s", process->process->pid,
		mode_text(process->mode.mode), reason ? ": " : "", reason ? reason : "");
	if (process->has_losses)
		fprintf(out,
			"; %" PRIu64 " records, %" PRIu64 " dropped, %" PRIu64
			" without times, %" PRIu64 " without room; clocks within %" PRIu64 " ns",
			losses->records, losses->dropped, losses->invalid, losses->without_room,
			losses->clock_width_ns);
	if (process->has_losses && losses->flushes_cut)
		fprintf(out, "; CUPTI's last flush took too long or failed");
	if (process->has_losses && losses->buffers_kept)
		fprintf(out, "; %" PRIu32 " buffers with records were not handed back",
			losses->buffers_kept);
	if (process->has_pairs)
		fprintf(out,
			"; times are upper bounds, with a resolution of %" PRIu64
			" ns: of an idle stream they include the launch, of a call that waits all of it",
			process->pairs.resolution_ns);
	else if (!process->has_losses && process->mode.mode != DEVICE_HOST_ONLY)
		fprintf(out,
			"; it did not end by itself: the last second of its devices is missing");
	fputc('\n', out);
}
