/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/memory/device_revisit.h"

#define TENSOR_ON_CUDA 1u

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

bool torsh_device_revisit_is_over(struct device_revisit *revisit,
				  const struct timeline_event *event)
{
	revisit->is_over |= revisit->until.change == DEVICE_CHANGE_BY_TIME
				    ? event->at_ns > revisit->until.at_ns
				    : revisit->blocks.n_changes == revisit->until.change;
	return revisit->is_over;
}

/* Scopes have the numbers of the first pass, where refused allocations have one as well. */
static void add_scope(struct device_blocks *blocks, const struct event *event)
{
	const struct event_device_refused *refused = &event->device_refused;

	if (event->id == EVENT_DEVICE_REFUSED)
		torsh_device_blocks_scope(blocks, refused->kind, refused->flags, refused->device);
	else if (event->id == EVENT_OUT_OF_MEMORY &&
		 event->out_of_memory.device >> 8 == TENSOR_ON_CUDA)
		torsh_device_blocks_scope(blocks, BLOCK_DEVICE, 0,
					  event->out_of_memory.device & 0xff);
}

void torsh_device_revisit_take(struct device_revisit *revisit,
			       const struct recorded_process *process,
			       const struct timeline_event *event, const struct span *innermost)
{
	struct device_origin origin;

	if (torsh_device_revisit_is_over(revisit, event))
		return;
	add_scope(&revisit->blocks, &event->event);
	origin = torsh_device_origin(revisit->memory->prepass, process, event, innermost);
	change_again(revisit, &event->event, &origin);
	torsh_device_graphs_take(&revisit->graphs, &revisit->blocks, &event->event, &origin,
				 change_again, revisit);
}
