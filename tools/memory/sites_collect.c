/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sites from the rows of a recording. */
#include "tools/memory/allocation_sites.h"

#include "tools/base/containers/array.h"

void torsh_sites_put(struct allocation_sites *sites, const struct allocation_site *site)
{
	if (!site->blocks && !site->bytes)
		return;
	sites->items =
		torsh_array_reserve(sites->items, sites->n, &sites->n_room, sizeof(*sites->items));
	sites->items[sites->n++] = *site;
}

/* Who gets the sites. */
struct taker {
	void (*each)(const struct allocation_site *site, void *context);
	void *context;
};

static void give(const struct taker *taker, const struct allocation_site *site)
{
	if (site->blocks || site->bytes)
		taker->each(site, taker->context);
}

void torsh_sites_find_scope(struct allocation_site *site)
{
	struct recorded_total total;

	torsh_totals_find(&site->process->totals, site->stack, &total);
	site->operator= total.operator;
	site->module = total.module;
}

/* Give a site with the scope of its stack. */
static void give_scoped(const struct taker *taker, const struct allocation_site *site)
{
	struct allocation_site scoped = *site;

	if (!site->blocks && !site->bytes)
		return;
	torsh_sites_find_scope(&scoped);
	taker->each(&scoped, taker->context);
}

static void put_site(const struct allocation_site *site, void *sites)
{
	torsh_sites_put(sites, site);
}

void torsh_sites_add(struct allocation_sites *sites, const struct allocation_site *site)
{
	give_scoped(&(struct taker){.each = put_site, .context = sites}, site);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* base + delta, which is negative only in a damaged recording. */
static uint64_t share(uint64_t base, int64_t delta)
{
	uint64_t sum = base + (uint64_t)delta;

	return (int64_t)sum < 0 ? 0 : sum;
}

static void give_live(const struct taker *taker, const struct recorded_process *process)
{
	const struct recorded_live *live = process->live.items;

	for (size_t i = 0; i < process->live.n; i++) {
		give_scoped(taker, &(struct allocation_site){
					   .process = process,
					   .stack = live[i].stack,
					   .blocks = less(live[i].blocks, live[i].inherited_blocks),
					   .bytes = less(live[i].bytes, live[i].inherited_bytes),
					   .variance = live[i].variance,
					   .usable_bytes = live[i].usable_bytes,
					   .usable_is_known = process->usable_is_known &&
							      !live[i].inherited_blocks,
					   .first_ns = live[i].first_ns,
					   .last_ns = live[i].last_ns,
					   .has_times = true,
					   .first_step = live[i].first_step,
					   .last_step = live[i].last_step,
				   });
	}
}

/* is_live: usage at the end; otherwise usage at the peak. */
static struct allocation_site usage_of(const struct recorded_process *process, size_t row,
				       bool is_live)
{
	struct recorded_total total = torsh_totals_at(&process->totals, row);
	bool is_moved = is_live || total.seen != process->heap.peak_number;

	return (struct allocation_site){
		.process = process,
		.stack = total.stack,
		.operator= total.operator,
		.module = total.module,
		.first_step = is_moved ? total.first_step : total.base_first_step,
		.last_step = is_moved ? total.last_step : total.base_last_step,
		.blocks = share(total.base_blocks, is_moved ? total.delta_blocks : 0),
		.bytes = share(total.base_bytes, is_moved ? total.delta_bytes : 0),
		.variance = is_moved ? total.live_variance : total.base_variance,
	};
}

struct allocation_site torsh_sites_peak_of(const struct recorded_process *process, size_t row)
{
	return usage_of(process, row, false);
}

static void give_usages(const struct taker *taker, const struct recorded_process *process,
			bool is_live)
{
	for (size_t i = 0; i < process->totals.n; i++) {
		struct allocation_site site = usage_of(process, i, is_live);

		give(taker, &site);
	}
}

static void give_joint(const struct taker *taker, const struct recorded_process *process)
{
	const struct recorded_session_usage *share = process->session_usages.items;

	for (size_t i = 0; i < process->session_usages.n; i++) {
		give_scoped(taker, &(struct allocation_site){
					   .process = process,
					   .stack = share[i].stack,
					   .blocks = share[i].blocks,
					   .bytes = share[i].bytes,
					   .first_step = share[i].first_step,
					   .last_step = share[i].last_step,
				   });
	}
}

static void give_totals(const struct taker *taker, const struct recorded_process *process,
			bool is_temporary)
{
	for (size_t i = 0; i < process->totals.n; i++) {
		struct recorded_total total = torsh_totals_at(&process->totals, i);

		give(taker,
		     &(struct allocation_site){
			     .process = process,
			     .stack = total.stack,
			     .operator= total.operator,
			     .module = total.module,
			     .blocks = is_temporary ? total.temporary : total.allocs,
			     .bytes = is_temporary ? total.temporary_bytes : total.alloc_bytes,
			     .variance = total.alloc_variance,
		     });
	}
}

static void give_mapped(const struct taker *taker, const struct recorded_process *process)
{
	const struct recorded_mapping *mapping = process->mappings.items;

	for (size_t i = 0; i < process->mappings.n; i++) {
		bool is_moved = mapping[i].seen != process->vm.peak_number;
		int64_t pieces = mapping[i].base_pieces + (is_moved ? mapping[i].delta_pieces : 0);
		int64_t bytes = mapping[i].base_bytes + (is_moved ? mapping[i].delta_bytes : 0);

		give_scoped(taker, &(struct allocation_site){
					   .process = process,
					   .stack = mapping[i].stack,
					   .mapped_as = mapping[i].kinds,
					   .mapped_path = mapping[i].path,
					   .blocks = pieces > 0 ? (uint64_t)pieces : 0,
					   .bytes = bytes > 0 ? (uint64_t)bytes : 0,
				   });
	}
}

void torsh_sites_each(const struct recorded_process *process, enum sites_of what,
		      void (*each)(const struct allocation_site *site, void *context),
		      void *context)
{
	const struct taker taker = {.each = each, .context = context};

	switch (what) {
	case SITES_LIVE:
		if (process->has_live)
			give_live(&taker, process);
		else
			give_usages(&taker, process, true);
		break;
	case SITES_CURRENT:
		give_usages(&taker, process, true);
		break;
	case SITES_PEAK:
		give_usages(&taker, process, false);
		break;
	case SITES_SESSION_PEAK:
		give_joint(&taker, process);
		break;
	case SITES_ALLOCATED:
		give_totals(&taker, process, false);
		break;
	case SITES_TEMPORARY:
		give_totals(&taker, process, true);
		break;
	case SITES_MAPPED:
		give_mapped(&taker, process);
		break;
	}
}

void torsh_sites_collect(struct allocation_sites *sites, const struct recorded_process *process,
			 enum sites_of what)
{
	torsh_sites_each(process, what, put_site, sites);
}
