/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/memory/device_revisit.h"

void torsh_device_revisit_create(struct device_revisit *revisit,
				 const struct memory_of_devices *memory,
				 const struct device_moment *until)
{
	*revisit = (struct device_revisit){.memory = memory, .until = *until};
	torsh_device_blocks_create(&revisit->blocks);
	torsh_device_graphs_create(&revisit->graphs);
}

void torsh_device_revisit_destroy(struct device_revisit *revisit)
{
	torsh_device_blocks_destroy(&revisit->blocks);
	torsh_device_graphs_destroy(&revisit->graphs);
}

static void change_again(void *context, const struct event *event,
			 const struct device_origin *origin)
{
	struct device_revisit *revisit = context;

	/* The moment may be within a launch. */
	if (revisit->blocks.n_changes != revisit->until.change)
		torsh_device_blocks_take(&revisit->blocks, event, origin);
}

void torsh_device_revisit_take(struct device_revisit *revisit,
			       const struct recorded_process *process,
			       const struct timeline_event *event, const struct span *innermost)
{
	struct device_origin origin;

	revisit->is_over |= revisit->until.change == DEVICE_CHANGE_BY_TIME
				    ? event->at_ns > revisit->until.at_ns
				    : revisit->blocks.n_changes == revisit->until.change;
	if (revisit->is_over)
		return;
	origin = torsh_device_origin(revisit->memory->prepass, process, event, innermost);
	change_again(revisit, &event->event, &origin);
	torsh_device_graphs_take(&revisit->graphs, &revisit->blocks, &event->event, &origin,
				 change_again, revisit);
}
