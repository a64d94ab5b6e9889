/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain/out_of_memory.h"

#include <stdbool.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/device.h"
#include "tools/base/memory.h"
#include "tools/base/private_file.h"
#include "tools/base/size.h"
#include "tools/writer/output/copy_path.h"

#define KEPT_MAX 4u

static int write_recording(int fd, const struct out_of_memory *kept, struct target *target,
			   const struct rows_session *session)
{
	const struct rows_end end = {.is_complete = true, .at_ns = session->taken_ns};
	struct recording_file *file =
		torsh_recording_create(fd, &kept->limits, session->start_realtime_ns);
	int result;

	if (!file)
		return -ENOMEM;
	torsh_rows_session(file, session);
	result = torsh_rows_target_alone(file, target);
	torsh_rows_end(file, &end);
	if (!result && torsh_recording_stopped(file, RECORDING_LAST))
		result = -ENOSPC;
	torsh_recording_finish(file);
	return result;
}

/* Returns 0 or -errno; on failure the incomplete file is removed. */
static int keep(const char *path, const struct out_of_memory *kept, struct target *target,
		const struct rows_session *session)
{
	struct private_file place;
	int result;

	if (!path)
		return -EACCES;
	result = torsh_private_create(&place, path);
	if (result)
		return result;
	result = write_recording(place.fd, kept, target, session);
	if (close(place.fd) && !result)
		result = -errno;
	if (!result)
		return torsh_private_keep(&place);
	torsh_private_drop(&place);
	return result;
}

static const char *label_name(const struct process_state *state, uint32_t label)
{
	return label ? state->tables->code.functions[label - 1].name : NULL;
}

/*
 * "aten::empty in net:Linear asked for 1.00 GiB of cuda:0, with 10 GiB allocated and 12 GiB
 * reserved"
 */
static void describe(const struct process_state *state, char *text, size_t n_text)
{
	const struct folded_out_of_memory *out = &state->out_of_memory;
	const char *name = label_name(state, out->operator),
		   *module = label_name(state, out->module);
	char asked[SIZE_TEXT_BYTES], allocated[SIZE_TEXT_BYTES], reserved[SIZE_TEXT_BYTES],
		device[DEVICE_NAME_BYTES];

	snprintf(text, n_text, "%s%s%s asked for %s of %s, with %s allocated and %s reserved",
		 name ? name : "no operator", module ? " in " : "", module ? module : "",
		 torsh_size_exact(out->event.bytes, asked),
		 torsh_device_name(out->event.device, device),
		 torsh_size_human(out->event.allocated, allocated),
		 torsh_size_human(out->event.reserved, reserved));
}

void torsh_out_of_memory_keep(struct out_of_memory *kept, struct target *target,
			      const struct rows_session *session)
{
	struct process_state *state = &target->state;
	char text[400], *path;
	int result;

	state->is_out_of_memory = false;
	if (kept->n_kept == KEPT_MAX) {
		torsh_process_state_note(
			state, "out of memory more than %u times: the timeline has them all",
			KEPT_MAX);
		return;
	}
	describe(state, text, sizeof(text));
	path = torsh_copy_path(kept->recording, "out-of-memory", ++kept->n_kept);
	torsh_process_state_note(state, "out of memory: %s; what was held then: %s", text,
				 path ? path : "not kept");
	result = keep(path, kept, target, session);
	if (result)
		torsh_process_state_note(state, "%s could not be written: %s", path ? path : "it",
					 strerror(-result));
	free(path);
}
