/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/leaks/block_classes.h"
#include "tools/memory/leaks/decisions.h"
#include "tools/memory/leaks/helper_processes.h"
#include "tools/memory/leaks/python_holds.h"
#include "tools/memory/leaks/window_parts.h"

/* Held memory is large from so many bytes on, and from this part of the highest heap on. */
#define HELD_MIN_BYTES (UINT64_C(1) << 20)
#define HELD_SHARE 100

static void keep_book(struct leaks *leaks, const char *what, const struct allocation_site *site)
{
	struct leaks_kept *kept = NULL;

	if (!site->blocks)
		return;
	for (size_t i = 0; i < leaks->n_bookkeeping && !kept; i++) {
		if (strcmp(leaks->bookkeeping[i].what, what) == 0)
			kept = &leaks->bookkeeping[i];
	}
	if (!kept) {
		leaks->bookkeeping = torsh_array_reserve(leaks->bookkeeping, leaks->n_bookkeeping,
							 &leaks->bookkeeping_room, sizeof(*kept));
		kept = &leaks->bookkeeping[leaks->n_bookkeeping++];
		*kept = (struct leaks_kept){.what = what};
	}
	kept->blocks += site->blocks;
	kept->bytes += site->bytes;
	leaks->bookkeeping_blocks += site->blocks;
	leaks->bookkeeping_bytes += site->bytes;
}

/* Returns whether the site is suppressed, and counts it for its rule. */
static bool suppress_holder(struct leaks *leaks, const struct rules *rules,
			    const struct ruling *ruling, const struct allocation_site *site)
{
	struct suppress_rule *rule;

	if (!torsh_ruling_holds(rules, ruling))
		return false;
	rule = &rules->suppress->rules[ruling->rule];
	rule->blocks += site->blocks;
	rule->bytes += site->bytes;
	rule->n_stacks += site->blocks != 0;
	leaks->suppressed_blocks += site->blocks;
	leaks->suppressed_bytes += site->bytes;
	return true;
}

static void count_inherited(struct leaks *leaks, const struct recorded_process *process)
{
	const struct recorded_live *live = process->live.items;

	for (size_t i = 0; i < process->live.n; i++) {
		leaks->inherited_blocks += live[i].inherited_blocks;
		leaks->inherited_bytes += live[i].inherited_bytes;
	}
}

static void keep_cached(struct leaks *leaks, const struct device_sum *cached)
{
	const struct allocation_site site = {.blocks = cached->blocks, .bytes = cached->bytes};

	if (cached->blocks)
		keep_book(leaks, "cache of the framework's allocator", &site);
}

static void collect_device(struct leaks *leaks, const struct recorded_process *process)
{
	struct device_sum cached = {0};

	for (size_t i = 0; i < leaks->devices->n; i++) {
		const struct device_process *of = &leaks->devices->items[i];
		size_t place = of->process == process ? torsh_device_place(of, leaks->device)
						      : DEVICE_NO_PLACE;

		if (place != DEVICE_NO_PLACE)
			torsh_device_memory_alive(&leaks->found, of, place, &cached,
						  &leaks->with_context);
	}
	keep_cached(leaks, &cached);
}

static void collect_alive(struct leaks *leaks, const struct recorded_process *process)
{
	if (leaks->devices)
		collect_device(leaks, process);
	else
		torsh_sites_collect(&leaks->found, process, SITES_LIVE);
}

static void count_at_exec(struct leaks *leaks, const struct recorded_process *process,
			  struct leaks_process *sum)
{
	struct leaks live = {.devices = leaks->devices, .device = leaks->device};
	struct allocation_sites alive;

	collect_alive(&live, process);
	alive = live.found;
	free(live.bookkeeping);
	torsh_sites_sum(&alive, &sum->exec_blocks, &sum->exec_bytes);
	torsh_sites_free(&alive);
	leaks->exec_blocks += sum->exec_blocks;
	leaks->exec_bytes += sum->exec_bytes;
}

/* Returns true if site number i of the process is no leak; it is counted as what it is. */
static bool is_left_out(struct leaks *leaks, const struct decisions *decisions, size_t i,
			const struct allocation_site *site)
{
	const char *package = decisions->packages ? decisions->packages[i] : NULL;
	const char *user = decisions->users ? decisions->users[i] : NULL;
	bool is_ruled;

	if (decisions->kept && decisions->kept[i]) {
		keep_book(leaks, decisions->kept[i], site);
		return true;
	}
	is_ruled = decisions->rulings &&
		   suppress_holder(leaks, &decisions->rules, &decisions->rulings[i], site);
	if (package)
		torsh_kept_imports_add(&leaks->imports, site, package, is_ruled);
	if (user)
		torsh_kept_imports_add(&leaks->first_uses, site, user, false);
	return is_ruled || package || user;
}

/* Find the part of the site that was allocated in the window; NULL: all of it. */
static struct window_parts parts_of(const struct leaks *leaks, const struct time_window *window,
				    const struct allocation_site *site)
{
	struct window_parts parts = {0};

	if (!window)
		parts.in = *site;
	else if (!leaks->devices)
		torsh_window_parts_find(&parts, window, site);
	/* On a device each block is a site, with the time of its event. */
	else if (torsh_window_has(window, site->first_ns))
		parts.in = *site;
	return parts;
}

/* Returns true if nothing that is left out anyway has the site's number; counts nothing. */
static bool is_reported(struct leaks *leaks, const struct decisions *decisions, size_t i,
			const struct allocation_site *site)
{
	struct allocation_site nothing = *site;

	nothing.blocks = nothing.bytes = 0;
	return !is_left_out(leaks, decisions, i, &nothing);
}

/* Add a site that may be in the window, unless it is no leak anyway. */
static void add_undecided(struct leaks *leaks, const struct decisions *decisions, size_t i,
			  const struct allocation_site *site)
{
	if (!is_reported(leaks, decisions, i, site))
		return;
	leaks->undecided_blocks += site->blocks;
	leaks->undecided_bytes += site->bytes;
	torsh_sites_put(&leaks->undecided, site);
}

static void find_held(struct leaks *leaks, struct decisions *decisions)
{
	struct site_reader freed = torsh_block_classes_freed(decisions->kinds.process);

	torsh_decisions_find(decisions, &freed);
	for (size_t i = 0; i < freed.n; i++) {
		struct allocation_site site = torsh_site_reader_at(&freed, i);

		if (!is_reported(leaks, decisions, i, &site))
			continue;
		leaks->held_blocks += site.blocks;
		leaks->held_bytes += site.bytes;
		torsh_sites_add(&leaks->held, &site);
	}
	torsh_site_reader_end(&freed);
}

/* Give back the memory of sites that were left out, if they were most. */
static void give_back_room(struct allocation_sites *sites)
{
	if (sites->n_room / 2 <= sites->n)
		return;
	sites->n_room = sites->n + 1;
	sites->items = torsh_need(reallocarray(sites->items, sites->n_room, sizeof(*sites->items)));
}

static void add_kept(struct counted_sites *sum, const struct allocation_site *site)
{
	struct counted_sites kept = torsh_block_classes_kept(&site->classes);

	sum->blocks += kept.blocks;
	sum->bytes += kept.bytes;
}

/* Count a site that nothing left out. Returns false if it is no leak, but memory in use. */
static bool take_leak(struct leaks *leaks, struct decisions *decisions,
		      struct allocation_site *site, const struct time_window *window,
		      struct leaks_process *sum)
{
	if (!leaks->devices)
		torsh_block_classes_find(site, window != NULL);
	if (!leaks->devices && !leaks->without_imports &&
	    torsh_python_holds_in_use(&decisions->kinds, site)) {
		keep_book(leaks, PYTHON_HOLDS_IN_USE, site);
		leaks->in_use_bytes += site->bytes;
		if (!window)
			torsh_sites_add(&leaks->held, site);
		return false;
	}
	sum->blocks += site->blocks;
	sum->bytes += site->bytes;
	add_kept(&sum->kept, site);
	leaks->usable_bytes += site->usable_bytes;
	leaks->usable_is_known = leaks->usable_is_known && site->usable_is_known;
	return true;
}

static void find_in_process(struct leaks *leaks, const struct recorded_process *process,
			    const struct time_window *window, struct leaks_process *sum,
			    struct symbols *symbols, struct suppress *suppress)
{
	size_t first = leaks->found.n, n = first;
	struct decisions decisions = {.of_device = leaks->devices,
				      .without_imports = leaks->without_imports};
	struct site_reader alive;

	collect_alive(leaks, process);
	torsh_decisions_start(&decisions, process, symbols, suppress);
	alive = torsh_site_reader_of(leaks->found.n > first ? leaks->found.items + first : NULL,
				     leaks->found.n - first);
	torsh_decisions_find(&decisions, &alive);
	for (size_t i = first; i < leaks->found.n; i++) {
		struct window_parts parts = parts_of(leaks, window, &leaks->found.items[i]);
		const struct allocation_site *site = &parts.in;

		if (parts.undecided.blocks)
			add_undecided(leaks, &decisions, i - first, &parts.undecided);
		if (!site->blocks)
			continue;
		leaks->alive_blocks += site->blocks;
		leaks->alive_bytes += site->bytes;
		if (is_left_out(leaks, &decisions, i - first, site))
			continue;
		leaks->found.items[n] = *site;
		n += take_leak(leaks, &decisions, &leaks->found.items[n], window, sum);
	}
	leaks->found.n = n;
	give_back_room(&leaks->found);
	/* Blocks of unknown time exist since before the process: they are in no window. */
	if (!leaks->devices && !window) {
		count_inherited(leaks, process);
		find_held(leaks, &decisions);
	}
	torsh_decisions_end(&decisions);
}

static void merge_like_found(const struct leaks *leaks, struct allocation_sites *sites,
			     struct symbols *symbols)
{
	sites->depth = leaks->found.depth;
	sites->view = leaks->found.view;
	sites->is_unmerged = leaks->found.is_unmerged;
	torsh_sites_merge_stacks(sites, symbols);
	torsh_sites_merge_alike(sites, symbols);
}

uint64_t torsh_leaks_held_min(struct recorded_process *const *processes, size_t n_processes)
{
	uint64_t peak = 0;

	for (size_t i = 0; i < n_processes; i++)
		peak = processes[i]->heap.peak_bytes > peak ? processes[i]->heap.peak_bytes : peak;
	return peak / HELD_SHARE > HELD_MIN_BYTES ? peak / HELD_SHARE : HELD_MIN_BYTES;
}

void torsh_leaks_find(struct leaks *leaks, struct recorded_process *const *processes,
		      size_t n_processes, struct symbols *symbols, struct suppress *suppress)
{
	leaks->usable_is_known = true;
	leaks->n_processes = n_processes;
	leaks->processes = torsh_need_items(NULL, 0, n_processes, sizeof(*leaks->processes));
	for (size_t i = 0; i < n_processes; i++) {
		bool is_exec = processes[i]->end == TORSH__PROCESS__END_KIND__EXECUTED;

		if (is_exec)
			count_at_exec(leaks, processes[i], &leaks->processes[i]);
		if (is_exec == leaks->at_exec)
			find_in_process(leaks, processes[i],
					leaks->windows ? &leaks->windows->items[i] : NULL,
					&leaks->processes[i], symbols, suppress);
		leaks->blocks += leaks->processes[i].blocks;
		leaks->bytes += leaks->processes[i].bytes;
	}
	torsh_kept_imports_sort(&leaks->imports);
	torsh_kept_imports_sort(&leaks->first_uses);
	torsh_sites_merge_stacks(&leaks->found, symbols);
	torsh_sites_merge_alike(&leaks->found, symbols);
	merge_like_found(leaks, &leaks->undecided, symbols);
	merge_like_found(leaks, &leaks->held, symbols);
	if (!leaks->with_helpers)
		torsh_helper_processes_fold(leaks, processes);
	leaks->classes = torsh_block_classes_sum(&leaks->found);
}

struct counted_sites torsh_leaks_kept(const struct leaks *leaks)
{
	if (leaks->classes.blocks[BLOCKS_UNKNOWN])
		return (struct counted_sites){0};
	return torsh_block_classes_kept(&leaks->classes);
}

struct leaks_parts torsh_leaks_parts(const struct leaks *leaks, const struct suppress *suppress)
{
	const struct kept_imports *imports = &leaks->imports;
	struct leaks_parts parts = {.imports = imports->bytes + imports->suppressed_bytes,
				    .first_uses = leaks->first_uses.bytes,
				    .libraries = leaks->bookkeeping_bytes - leaks->in_use_bytes,
				    .in_use = leaks->in_use_bytes,
				    .helpers = leaks->helpers.bytes};

	for (size_t i = 0; i < suppress->n; i++)
		*(suppress->rules[i].is_built_in ? &parts.interpreter : &parts.rules) +=
			suppress->rules[i].bytes;
	parts.interpreter = parts.interpreter > imports->suppressed_bytes
				    ? parts.interpreter - imports->suppressed_bytes
				    : 0;
	return parts;
}

void torsh_leaks_free(struct leaks *leaks)
{
	torsh_sites_free(&leaks->found);
	torsh_sites_free(&leaks->undecided);
	torsh_sites_free(&leaks->held);
	free(leaks->processes);
	free(leaks->bookkeeping);
	free(leaks->imports.items);
	free(leaks->first_uses.items);
	*leaks = (struct leaks){0};
}
