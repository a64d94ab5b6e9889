/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/owners_pass.h"

#define NO_SEGMENT UINT64_MAX

struct free_blocks torsh_owners_pass_free_blocks(const struct owners_pass *pass, bool is_private,
						 uint64_t n_ordinals)
{
	return torsh_free_blocks(&pass->revisit.blocks,
				 &(struct free_blocks_choice){
					 .scope = (uint32_t)pass->request->place,
					 .is_managed = pass->request->process->blocks.is_managed,
					 .is_private = pass->captures.is_private,
					 .n_private = pass->captures.n,
					 .wants_private = is_private,
					 .n_ordinals = n_ordinals,
				 });
}

bool torsh_owners_pass_is_private(const struct owners_pass *pass, const struct device_block *block)
{
	return block->ordinal < pass->captures.n && pass->captures.is_private[block->ordinal];
}

/* Of the allocator's own blocks, which the first pass knows. */
static void see_segment(struct owners_pass *pass, uint64_t n_before,
			const struct timeline_event *event)
{
	const struct device_blocks *blocks = &pass->revisit.blocks;

	if (blocks->n_ordinals == n_before || !pass->request->process->blocks.is_managed[n_before])
		return;
	/* Of pages there may be several. */
	if (pass->new_segment == NO_SEGMENT)
		pass->new_segment = n_before;
	pass->new_thread = event->thread;
}

/* The allocator gives out a part of what it just reserved: before the blocks take the tensor. */
static void see_tensor(struct owners_pass *pass, const struct timeline_event *event)
{
	const struct event_tensor *tensor = &event->event.tensor;
	const struct device_block *block;

	if (pass->new_segment == NO_SEGMENT || tensor->is_free || event->thread != pass->new_thread)
		return;
	block = torsh_device_blocks_at(&pass->revisit.blocks, tensor->address);
	if (block && block->scope == pass->request->place)
		pass->growth = (struct cache_growth){
			.is_known = true,
			.at_ns = event->at_ns,
			.requested_bytes = tensor->bytes,
			.before = torsh_owners_pass_free_blocks(
				pass, torsh_owners_pass_is_private(pass, block), pass->new_segment),
		};
	pass->new_segment = NO_SEGMENT;
}

static uint32_t device_of(const struct owners_pass *pass)
{
	return pass->request->process->blocks.scopes[pass->request->place].device;
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct owners_pass *pass = context;
	struct device_blocks *blocks = &pass->revisit.blocks;
	uint64_t n_before = blocks->n_ordinals;
	uint32_t id = event->event.id;

	if (torsh_device_revisit_is_over(&pass->revisit, event))
		return;
	torsh_loaded_code_take(&pass->code, event, device_of(pass));
	if (id == EVENT_DEVICE_LIMITS && event->event.device_limits.device == device_of(pass))
		pass->limits = event->event.device_limits;
	if (id == EVENT_TENSOR)
		see_tensor(pass, event);
	torsh_device_revisit_take(&pass->revisit, process, event, innermost);
	torsh_captures_see(&pass->captures, process, blocks, &event->event);
	if (id == EVENT_DEVICE_ALLOC)
		see_segment(pass, n_before, event);
}

void torsh_owners_pass_make(struct owners_pass *pass, const struct owners_request *request)
{
	static const struct span_visitor visitor = {.event = see_event};
	struct recorded_process *one[1] = {(struct recorded_process *)request->process->process};

	*pass = (struct owners_pass){.request = request, .new_segment = NO_SEGMENT};
	torsh_device_revisit_create(&pass->revisit, request->memory, &request->at);
	torsh_device_memory_visit(request->memory, one, 1, &visitor, pass);
}

void torsh_owners_pass_free(struct owners_pass *pass)
{
	torsh_device_revisit_destroy(&pass->revisit);
	torsh_captures_free(&pass->captures);
	torsh_loaded_code_free(&pass->code);
}
