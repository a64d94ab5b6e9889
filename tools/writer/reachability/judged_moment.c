/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/judged_moment.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/input/target.h"
#include "tools/writer/reachability/allocator_maps.h"

static void take_threads(struct judged_moment *moment, const struct stopped_threads *threads)
{
	size_t n_bytes = threads->n * sizeof(*threads->items);

	moment->threads.items = torsh_memory_alloc(n_bytes + 1);
	memcpy(moment->threads.items, threads->items, n_bytes);
	moment->threads.n = threads->n;
}

static void take_blocks(struct judged_moment *moment, const struct live_table *live,
			uint64_t exit_stamp)
{
	struct live_block block;
	uint64_t at = 0;

	moment->blocks = torsh_memory_alloc((live->n_blocks + 1) * sizeof(*moment->blocks));
	while (moment->n_blocks < live->n_blocks && torsh_live_next(live, &at, &block)) {
		/* No address of a process is that large: it is found nowhere. */
		if (block.address >> MOMENT_ADDRESS_BITS)
			continue;
		moment->blocks[moment->n_blocks++] = (struct moment_block){
			.address = block.address & ((UINT64_C(1) << MOMENT_ADDRESS_BITS) - 1),
			.size = block.size & LIVE_SIZE_MAX,
			.stamp = block.stamp & LIVE_STAMP_MAX,
			.site_low = block.site & UINT16_MAX,
			.site_high = block.site >> 16,
			.is_old = block.stamp < exit_stamp,
		};
	}
}

static void take_reads(struct judged_moment *moment, const struct process_state *state)
{
	const struct tensor_reads *reads = &state->reads;
	const struct hash_entry *entry;
	size_t at = 0;

	moment->has_reads = reads->n && !reads->n_left_out;
	moment->reads = torsh_memory_alloc((reads->n + 1) * sizeof(*moment->reads));
	while (moment->n_reads < reads->n &&
	       (entry = torsh_hash_map_next(&reads->by_address, &at))) {
		const struct tensor_read *read = &reads->items[entry->value];
		struct moment_read *copy = &moment->reads[moment->n_reads++];

		*copy = (struct moment_read){.stamp = read->stamp - state->heap.first_stamp,
					     .operator= read->operator,
					     .step = read->step };
		memcpy(&copy->address, entry->key, sizeof(copy->address));
	}
}

static void take_mapped(struct judged_moment *moment, const struct target *target)
{
	const struct mappings *mappings = &target->state.mappings;
	const struct address_range *range;

	for (uint64_t at = 0; (range = torsh_address_ranges_above(&mappings->ranges, at));
	     at = range->end) {
		const char *mapper = torsh_mapper_of(target, range->start);

		if (!mapper)
			continue;
		moment->mapped =
			torsh_array_reserve(moment->mapped, moment->n_mapped,
					    &moment->mapped_capacity, sizeof(*moment->mapped));
		moment->mapped[moment->n_mapped++] =
			(struct mapped_range){range->start, range->end, torsh_memory_text(mapper)};
	}
}

void torsh_judged_moment_take(struct judged_moment *moment, const struct target *target,
			      const struct stopped_threads *threads, uint64_t exit_stamp)
{
	const struct process_state *state = &target->state;

	*moment = (struct judged_moment){
		.process = target->pid,
		.pid = target->pid,
		.at_ns = torsh_clock_to_ns(&state->clock, state->last_stamp),
		.stamp = state->last_stamp + 1 - state->heap.first_stamp,
		.n_sites = state->heap.n_sites,
		.step = state->steps.current,
	};
	take_threads(moment, threads);
	take_blocks(moment, &state->heap.live, exit_stamp);
	take_reads(moment, state);
	take_mapped(moment, target);
	torsh_allocator_maps_add(&moment->allocator_maps, target);
	torsh_python_maps_add(&moment->python_maps, target);
}

const char *torsh_judged_moment_mapper(const struct judged_moment *moment, uint64_t address)
{
	uint32_t from = 0, to = moment->n_mapped;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (moment->mapped[middle].end <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from < moment->n_mapped && moment->mapped[from].begin <= address
		       ? moment->mapped[from].mapper
		       : NULL;
}

void torsh_judged_moment_free_blocks(struct judged_moment *moment)
{
	free(moment->blocks);
	moment->blocks = NULL;
	moment->n_blocks = 0;
}

void torsh_judged_moment_free(struct judged_moment *moment)
{
	torsh_judged_moment_free_blocks(moment);
	free(moment->reads);
	free(moment->threads.items);
	torsh_heap_ranges_free(&moment->allocator_maps);
	torsh_heap_ranges_free(&moment->python_maps);
	for (uint32_t i = 0; i < moment->n_mapped; i++)
		free(moment->mapped[i].mapper);
	free(moment->mapped);
	*moment = (struct judged_moment){0};
}
