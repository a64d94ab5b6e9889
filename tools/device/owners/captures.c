/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/captures.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/recording/timeline.h"

static bool is_called(const char *api, const char *name)
{
	return api && strncmp(api, "cu", 2) == 0 && strstr(api, name);
}

static void see_call(struct captures *captures, const struct recorded_process *process,
		     uint32_t label)
{
	const char *api = torsh_timeline_label(process, label);

	if (is_called(api, "StreamBeginCapture"))
		captures->n_open++;
	else if (is_called(api, "StreamEndCapture") && captures->n_open)
		captures->n_open--;
}

static void make_private(struct captures *captures, const struct device_blocks *blocks,
			 uint64_t ordinal)
{
	while (captures->n < blocks->n_ordinals) {
		captures->is_private =
			torsh_array_reserve(captures->is_private, captures->n, &captures->n_room,
					    sizeof(*captures->is_private));
		captures->is_private[captures->n++] = false;
	}
	if (ordinal < captures->n)
		captures->is_private[ordinal] = true;
}

void torsh_captures_see(struct captures *captures, const struct recorded_process *process,
			const struct device_blocks *blocks, const struct event *event)
{
	const struct device_block *block;

	switch (event->id) {
	case EVENT_DEVICE_CALL:
		if (!event->device_call.result)
			see_call(captures, process, event->device_call.api);
		break;
	case EVENT_DEVICE_ALLOC:
		if (captures->n_open && blocks->n_ordinals)
			make_private(captures, blocks, blocks->n_ordinals - 1);
		break;
	case EVENT_TENSOR:
		block = captures->n_open && !event->tensor.is_free
				? torsh_device_blocks_at(blocks, event->tensor.address)
				: NULL;
		if (block)
			make_private(captures, blocks, block->ordinal);
		break;
	default:
		break;
	}
}

void torsh_captures_free(struct captures *captures)
{
	free(captures->is_private);
}
