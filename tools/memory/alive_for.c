/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/alive_for.h"

#include "tools/base/containers/sparse_array.h"

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What a stack had at other moments. */
struct bounds {
	uint64_t least_bytes, least_blocks; /* between the limit and the moment */
	uint64_t before_bytes, before_blocks; /* the most before the limit */
	size_t compared; /* number of the last moment it was compared with */
};

/* Lower each stack's least to what it had at another moment. */
static void see_between(struct sparse_array *all, const struct allocation_sites *then,
			size_t number)
{
	struct bounds *bounds;

	for (size_t i = 0; i < then->n; i++) {
		bounds = torsh_sparse_array_at(all, then->items[i].stack);
		bounds->least_bytes = lower(bounds->least_bytes, then->items[i].bytes);
		bounds->least_blocks = lower(bounds->least_blocks, then->items[i].blocks);
		bounds->compared = number;
	}
	for (size_t stack = 0; (bounds = torsh_sparse_array_next(all, &stack)); stack++)
		if (bounds->compared != number)
			bounds->least_bytes = bounds->least_blocks = 0;
}

/* Bytes and blocks are of one moment: the one with most blocks. */
static void see_before(struct sparse_array *all, const struct allocation_sites *then)
{
	for (size_t i = 0; i < then->n; i++) {
		struct bounds *bounds = torsh_sparse_array_at(all, then->items[i].stack);

		if (then->items[i].blocks < bounds->before_blocks)
			continue;
		bounds->before_bytes = then->items[i].bytes;
		bounds->before_blocks = then->items[i].blocks;
	}
}

/* A peak has the block that made it one; other moments come before what is at their time. */
static bool has_last(const struct memory_moment *moment)
{
	return moment->kind == MEMORY_AT_PEAK || moment->kind == MEMORY_AT_WINDOW ||
	       moment->kind == MEMORY_AT_JOINT || moment->kind == MEMORY_AT_END;
}

/* A moment at the limit itself, as the end of a step may be, has exactly what is before it. */
static void see_moments(struct sparse_array *all, const struct memory_moments *moments,
			const struct memory_moment *moment, uint64_t limit_ns)
{
	for (size_t i = 0; i < moments->n; i++) {
		struct allocation_sites then = {0};

		if (moments->items[i].at_ns >= moment->at_ns)
			continue;
		torsh_memory_moment_sites(&then, moments, &moments->items[i]);
		if (moments->items[i].at_ns >= limit_ns)
			see_between(all, &then, i + 1);
		if (moments->items[i].at_ns + has_last(&moments->items[i]) <= limit_ns)
			see_before(all, &then);
		torsh_sites_free(&then);
	}
}

/* Blocks that live at the end: from before the limit, and from between it and the moment. */
struct parts {
	uint64_t bytes, blocks, young_bytes, young_blocks;
};

/* before_ns: the moment has what was allocated before that. */
static void add_live(struct parts *parts, const struct recorded_live_group *group,
		     uint64_t limit_ns, uint64_t before_ns)
{
	if (group->last_ns < limit_ns) {
		parts->bytes += group->bytes;
		parts->blocks += group->blocks;
	} else if (group->first_ns >= limit_ns && group->last_ns < before_ns) {
		parts->young_bytes += group->bytes;
		parts->young_blocks += group->blocks;
	}
}

static struct parts live_parts(const struct recorded_process *process, uint32_t stack,
			       uint64_t limit_ns, uint64_t before_ns)
{
	const struct recorded_live *live =
		torsh_recording_row(&process->live, stack, sizeof(*live));
	struct parts parts = {0};

	if (!live || !process->has_exact_times || live->inherited_blocks)
		return parts;
	for (size_t i = 0; i < live->n_groups; i++)
		add_live(&parts, &process->live_groups[live->group + i], limit_ns, before_ns);
	if (!live->n_groups)
		add_live(&parts,
			 &(struct recorded_live_group){.first_ns = live->first_ns,
						       .last_ns = live->last_ns,
						       .blocks = live->blocks,
						       .bytes = live->bytes},
			 limit_ns, before_ns);
	return parts;
}

/* A part of a site; the steps of its blocks are not known. */
static void add_part(struct allocation_sites *sites, const struct allocation_site *site,
		     uint64_t bytes, uint64_t blocks)
{
	struct allocation_site part = *site;

	part.bytes = bytes;
	part.blocks = blocks;
	part.first_step = part.last_step = 0;
	part.has_times = part.usable_is_known = false;
	torsh_sites_put(sites, &part);
}

/* Divide a site by its bounds. */
static void divide(struct allocation_sites *alive, struct allocation_sites *undecided,
		   const struct allocation_site *site, const struct bounds *bounds,
		   const struct parts *parts)
{
	uint64_t bytes = lower(bounds->least_bytes, less(site->bytes, parts->young_bytes)),
		 blocks = lower(bounds->least_blocks, less(site->blocks, parts->young_blocks)),
		 known_bytes = parts->bytes, known_blocks = parts->blocks;
	struct recorded_total total = {0};

	if (torsh_totals_find(&site->process->totals, site->stack, &total)) {
		uint64_t later = less(total.allocs, bounds->before_blocks),
			 later_bytes = less(total.alloc_bytes, bounds->before_bytes);

		if (less(site->blocks, later) > known_blocks) {
			known_blocks = less(site->blocks, later);
			known_bytes = less(site->bytes, later_bytes);
		}
	}
	/* Without a block there are no bytes, and all blocks have all bytes. */
	if (!blocks)
		bytes = known_bytes = 0;
	if (known_blocks >= blocks)
		known_bytes = bytes;
	known_blocks = lower(known_blocks, blocks);
	known_bytes = lower(known_bytes, bytes);
	add_part(alive, site, known_bytes, known_blocks);
	add_part(undecided, site, bytes - known_bytes, blocks - known_blocks);
}

void torsh_alive_for(struct allocation_sites *alive, struct allocation_sites *undecided,
		     const struct memory_moments *moments, const struct memory_moment *moment,
		     uint64_t limit_ns)
{
	const struct recorded_process *process = moments->process;
	struct allocation_sites held = {0};
	struct sparse_array all;

	if (process->heap.sampled_every) {
		torsh_memory_moment_sites(undecided, moments, moment);
		return;
	}
	torsh_sparse_array_create(&all, sizeof(struct bounds));
	torsh_memory_moment_sites(&held, moments, moment);
	for (size_t i = 0; i < held.n; i++)
		*(struct bounds *)torsh_sparse_array_at(&all, held.items[i].stack) =
			(struct bounds){.least_bytes = held.items[i].bytes,
					.least_blocks = held.items[i].blocks};
	see_moments(&all, moments, moment, limit_ns);
	for (size_t i = 0; i < held.n; i++) {
		uint32_t stack = held.items[i].stack;
		struct parts parts =
			live_parts(process, stack, limit_ns, moment->at_ns + has_last(moment));

		divide(alive, undecided, &held.items[i], torsh_sparse_array_at(&all, stack),
		       &parts);
	}
	torsh_sparse_array_destroy(&all);
	torsh_sites_free(&held);
}
