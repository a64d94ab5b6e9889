/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/window_parts.h"

/* A copy of the site without any block. */
static struct allocation_site empty_part(const struct allocation_site *site)
{
	struct allocation_site part = *site;

	part.blocks = part.bytes = part.usable_bytes = 0;
	part.usable_is_known = false;
	part.first_step = part.last_step = 0;
	return part;
}

/* Groups come in the order of time. */
static void add_group(struct allocation_site *part, const struct allocation_site *site,
		      const struct recorded_live_group *group)
{
	if (!part->blocks) {
		part->first_ns = group->first_ns;
		part->first_step = group->first_ns == site->first_ns ? site->first_step : 0;
	}
	part->last_ns = group->last_ns;
	part->last_step = group->last_ns == site->last_ns ? site->last_step : 0;
	part->blocks += group->blocks;
	part->bytes += group->bytes;
}

static void split(struct window_parts *parts, const struct time_window *window,
		  const struct allocation_site *site, const struct recorded_live *live)
{
	for (size_t i = 0; i < live->n_groups; i++) {
		const struct recorded_live_group *group =
			&site->process->live_groups[live->group + i];
		enum window_part part =
			torsh_window_part(window, group->blocks, group->first_ns, group->last_ns);

		if (part == WINDOW_HAS_ALL)
			add_group(&parts->in, site, group);
		else if (part == WINDOW_HAS_SOME)
			add_group(&parts->undecided, site, group);
	}
}

void torsh_window_parts_find(struct window_parts *parts, const struct time_window *window,
			     const struct allocation_site *site)
{
	enum window_part part = WINDOW_HAS_NONE;
	const struct recorded_live *live;

	*parts = (struct window_parts){.in = empty_part(site), .undecided = empty_part(site)};
	if (site->has_times)
		part = torsh_window_part(window, site->blocks, site->first_ns, site->last_ns);
	else if (window->n)
		part = WINDOW_HAS_SOME;
	if (part == WINDOW_HAS_ALL)
		parts->in = *site;
	if (part != WINDOW_HAS_SOME)
		return;
	live = torsh_recording_row(&site->process->live, site->stack, sizeof(*live));
	if (live && live->n_groups && !live->inherited_blocks)
		split(parts, window, site, live);
	else
		parts->undecided = *site;
}
