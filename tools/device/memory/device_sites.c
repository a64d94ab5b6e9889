/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The sites that hold device memory, at the end or at a given moment, for which the timeline is
 * read again.
 */
#include "tools/device/memory/device_revisit.h"
#include "tools/symbols/cuda_frames.h"

/* ---- who holds it ---------------------------------------------------------------------------- */

static void put(struct allocation_sites *sites, const struct recorded_process *process,
		const struct device_origin *origin, enum holder_what what, uint64_t bytes)
{
	torsh_sites_put(sites, &(struct allocation_site){
				       .process = process,
				       .what = what,
				       .stack = torsh_cuda_frames_shown(process, origin->stack),
				       .blocks = 1,
				       .bytes = bytes,
				       .has_times = true,
				       .first_ns = origin->at_ns,
				       .last_ns = origin->at_ns,
				       .operator= origin->operator,
				       .module = origin->module,
				       .first_step = origin->step,
				       .last_step = origin->step,
			       });
}

/* The places whose sites are requested. */
struct wanted {
	size_t place; /* DEVICE_NO_PLACE: all places of the session-wide sum */
	const bool *is_managed; /* by ordinal, at the end */
};

static bool is_wanted(const struct wanted *wanted, const struct device_blocks *blocks,
		      const struct device_block *block)
{
	if (wanted->place == DEVICE_NO_PLACE)
		return torsh_device_is_joint(&blocks->scopes[block->scope]);
	return block->scope == wanted->place;
}

static void put_blocks(struct allocation_sites *sites, const struct device_process *of,
		       const struct device_blocks *blocks, const struct wanted *wanted,
		       struct device_sum *cached)
{
	for (size_t i = 0; i < blocks->n_blocks; i++) {
		const struct device_block *block = &blocks->blocks[i];

		if (!block->is_alive || !is_wanted(wanted, blocks, block))
			continue;
		if (!wanted->is_managed[block->ordinal]) {
			put(sites, of->process, &block->origin, SITE_OF_BLOCKS, block->bytes);
		} else if (block->bytes > block->tensor_bytes && cached) {
			cached->blocks++;
			cached->bytes += block->bytes - block->tensor_bytes;
		} else if (block->bytes > block->tensor_bytes) {
			put(sites, of->process, &block->origin, SITE_OF_CACHE,
			    block->bytes - block->tensor_bytes);
		}
	}
}

static void put_tensors(struct allocation_sites *sites, const struct device_process *of,
			const struct device_blocks *blocks, const struct wanted *wanted)
{
	for (size_t i = 0; i < blocks->n_tensors; i++) {
		const struct device_tensor *tensor = &blocks->tensors[i];
		const struct device_block *block;

		if (!tensor->is_alive || !tensor->inside_bytes)
			continue;
		block = torsh_device_blocks_at(blocks, tensor->address);
		if (block && is_wanted(wanted, blocks, block))
			put(sites, of->process, &tensor->origin, SITE_OF_TENSORS,
			    tensor->inside_bytes);
	}
}

void torsh_device_memory_alive(struct allocation_sites *sites, const struct device_process *process,
			       size_t place, struct device_sum *cached, struct device_sum *left)
{
	const struct device_blocks *blocks = &process->blocks;
	struct wanted wanted = {.place = place, .is_managed = blocks->is_managed};

	put_blocks(sites, process, blocks, &wanted, cached);
	put_tensors(sites, process, blocks, &wanted);
	for (size_t i = 0; i < blocks->n_left; i++) {
		if (!is_wanted(&wanted, blocks, &blocks->left[i]))
			continue;
		put(sites, process->process, &blocks->left[i].origin, SITE_OF_BLOCKS,
		    blocks->left[i].bytes);
		left->blocks++;
		left->bytes += blocks->left[i].bytes;
	}
}

/* ---- a second pass, up to a moment ----------------------------------------------------------- */

static void see_again(void *context, const struct recorded_process *of,
		      const struct timeline_event *event, struct span *innermost)
{
	torsh_device_revisit_take(context, of, event, innermost);
}

void torsh_device_memory_at(struct allocation_sites *sites, const struct memory_of_devices *memory,
			    const struct device_process *process, size_t place,
			    const struct device_moment *moment)
{
	static const struct span_visitor visitor = {.event = see_again};
	struct wanted wanted = {.place = place, .is_managed = process->blocks.is_managed};
	struct recorded_process *one[1] = {(struct recorded_process *)process->process};
	struct device_revisit revisit;

	torsh_device_revisit_create(&revisit, memory, moment);
	torsh_device_memory_visit(memory, one, 1, &visitor, &revisit);
	put_blocks(sites, process, &revisit.blocks, &wanted, NULL);
	put_tensors(sites, process, &revisit.blocks, &wanted);
	torsh_device_revisit_destroy(&revisit);
}
