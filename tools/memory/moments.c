/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/moments.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"

const char *const torsh_memory_moment_names[] = {
#define KIND(NAME, name) #name,
	MEMORY_MOMENT_KINDS
#undef KIND
};

static void put(struct memory_moments *moments, const struct memory_moment *moment)
{
	moments->items = torsh_array_reserve(moments->items, moments->n, &moments->n_room,
					     sizeof(*moments->items));
	moments->items[moments->n++] = *moment;
}

/* ---- what the writer kept -------------------------------------------------------------------- */

/* Usage by stack, and the sums. */
struct usages {
	struct sparse_array by_stack; /* of struct usage */
	uint64_t bytes, blocks;
};

struct usage {
	uint64_t bytes, blocks;
};

static void apply(struct usages *usages, const struct recorded_moment *moment)
{
	struct usage_at now = {0};

	while (torsh_usage_list_next(&moment->usages, &now)) {
		struct usage *usage = torsh_sparse_array_at(&usages->by_stack, now.number);

		usages->bytes += now.bytes - usage->bytes;
		usages->blocks += now.blocks - usage->blocks;
		*usage = (struct usage){.bytes = now.bytes, .blocks = now.blocks};
	}
}

static enum memory_moment_kind kind_of(const struct recorded_moment *moment)
{
	switch (moment->kind) {
	case RECORDED_MOMENT_BY_STEP:
		return MEMORY_AT_STEP;
	case RECORDED_MOMENT_BY_MARK:
		return MEMORY_AT_MARK;
	default:
		return moment->resident_bytes ? MEMORY_AT_RSS : MEMORY_AT_TIME;
	}
}

static const char *mark_name(const struct recorded_process *process,
			     const struct recorded_moment *moment)
{
	if (moment->kind != RECORDED_MOMENT_BY_MARK || !moment->name ||
	    moment->name > process->tables->n_functions)
		return NULL;
	return process->tables->functions[moment->name - 1].name;
}

static void put_kept(struct memory_moments *moments)
{
	const struct recorded_process *process = moments->process;
	struct usages usages = {0};

	torsh_sparse_array_create(&usages.by_stack, sizeof(struct usage));
	for (size_t i = 0; i < process->n_moments; i++) {
		const struct recorded_moment *moment = &process->moments[i];
		bool has_step = moment->kind == RECORDED_MOMENT_BY_STEP && moment->name;

		apply(&usages, moment);
		if (usages.bytes != moment->bytes || usages.blocks != moment->blocks) {
			moments->n_damaged++;
			continue;
		}
		moments->n_kept++;
		put(moments, &(struct memory_moment){.kind = kind_of(moment),
						     .at_ns = moment->at_ns,
						     .bytes = moment->bytes,
						     .blocks = moment->blocks,
						     .mark = mark_name(process, moment),
						     .has_step = has_step,
						     .step = has_step ? moment->name - 1 : 0,
						     .resident_bytes = moment->resident_bytes,
						     .index = i});
	}
	torsh_sparse_array_destroy(&usages.by_stack);
}

static void put_window_peaks(struct memory_moments *moments)
{
	const struct recorded_process *process = moments->process;

	for (size_t i = 0; i < process->n_window_peaks; i++) {
		const struct recorded_moment *peak = &process->window_peaks[i];
		struct usage_at usage = {0};
		uint64_t bytes = 0, blocks = 0;

		while (torsh_usage_list_next(&peak->usages, &usage)) {
			bytes += usage.bytes;
			blocks += usage.blocks;
		}
		if (bytes != peak->bytes || blocks != peak->blocks)
			moments->n_damaged++;
		else
			put(moments,
			    &(struct memory_moment){.kind = peak->joint_bytes ? MEMORY_AT_JOINT
									      : MEMORY_AT_WINDOW,
						    .at_ns = peak->at_ns,
						    .bytes = bytes,
						    .blocks = blocks,
						    .index = i});
	}
}

static void collect_window_peak(struct allocation_sites *sites,
				const struct recorded_process *process, size_t index)
{
	const struct recorded_moment *peak = &process->window_peaks[index];
	struct usage_at usage = {0};

	while (torsh_usage_list_next(&peak->usages, &usage))
		torsh_sites_add(sites, &(struct allocation_site){.process = process,
								 .stack = usage.number,
								 .bytes = usage.bytes,
								 .blocks = usage.blocks});
}

static void collect_kept(struct allocation_sites *sites, const struct recorded_process *process,
			 size_t index)
{
	struct usages usages = {0};
	const struct usage *usage;

	torsh_sparse_array_create(&usages.by_stack, sizeof(struct usage));
	for (size_t i = 0; i <= index; i++)
		apply(&usages, &process->moments[i]);
	for (size_t stack = 0; (usage = torsh_sparse_array_next(&usages.by_stack, &stack)); stack++)
		torsh_sites_add(sites, &(struct allocation_site){.process = process,
								 .stack = (uint32_t)stack,
								 .bytes = usage->bytes,
								 .blocks = usage->blocks});
	torsh_sparse_array_destroy(&usages.by_stack);
}

/* ---- all moments ----------------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
	const struct memory_moment *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

uint64_t torsh_memory_end_ns(const struct recorded_process *process)
{
	return process->has_live     ? process->live_ns
	       : process->has_end_ns ? process->end_ns
				     : process->heap.peak_ns;
}

void torsh_memory_moments_make(struct memory_moments *moments,
			       const struct recorded_process *process)
{
	const struct recorded_heap *heap = &process->heap;

	*moments = (struct memory_moments){.process = process};
	if (!torsh_recording_has_heap(process))
		return;
	put(moments, &(struct memory_moment){.kind = MEMORY_AT_START, .at_ns = process->start_ns});
	put_kept(moments);
	put_window_peaks(moments);
	put(moments, &(struct memory_moment){.kind = MEMORY_AT_PEAK,
					     .at_ns = heap->peak_ns,
					     .bytes = heap->peak_bytes,
					     .blocks = heap->peak_blocks});
	put(moments, &(struct memory_moment){.kind = MEMORY_AT_END,
					     .at_ns = torsh_memory_end_ns(process),
					     .bytes = heap->current_bytes,
					     .blocks = heap->current_blocks});
	qsort(moments->items, moments->n, sizeof(*moments->items), compare_times);
}

void torsh_memory_moments_free(struct memory_moments *moments)
{
	free(moments->items);
}

void torsh_memory_moment_sites(struct allocation_sites *sites, const struct memory_moments *moments,
			       const struct memory_moment *moment)
{
	switch (moment->kind) {
	case MEMORY_AT_START:
		return;
	case MEMORY_AT_PEAK:
		torsh_sites_collect(sites, moments->process, SITES_PEAK);
		return;
	case MEMORY_AT_END:
		torsh_sites_collect(sites, moments->process, SITES_CURRENT);
		return;
	case MEMORY_AT_JOINT:
	case MEMORY_AT_WINDOW:
		collect_window_peak(sites, moments->process, moment->index);
		return;
	default:
		collect_kept(sites, moments->process, moment->index);
	}
}

void torsh_memory_moment_change(struct allocation_sites *sites,
				const struct memory_moments *moments,
				const struct memory_moment *from, const struct memory_moment *to)
{
	size_t first = sites->n;

	torsh_memory_moment_sites(sites, moments, from);
	for (size_t i = first; i < sites->n; i++) {
		sites->items[i].bytes = 0 - sites->items[i].bytes;
		sites->items[i].blocks = 0 - sites->items[i].blocks;
		sites->items[i].first_step = sites->items[i].last_step = 0;
	}
	torsh_memory_moment_sites(sites, moments, to);
}

/* ---- finding one ----------------------------------------------------------------------------- */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

const struct memory_moment *torsh_memory_moment_near(const struct memory_moments *moments,
						     uint64_t at_ns)
{
	const struct memory_moment *nearest = NULL;

	for (size_t i = 0; i < moments->n; i++) {
		if (!nearest ||
		    distance(moments->items[i].at_ns, at_ns) <= distance(nearest->at_ns, at_ns))
			nearest = &moments->items[i];
	}
	return nearest;
}

const struct memory_moment *torsh_memory_moment_of_step(const struct memory_moments *moments,
							uint64_t step)
{
	const struct memory_moment *nearest = NULL;

	for (size_t i = 0; i < moments->n; i++) {
		const struct memory_moment *moment = &moments->items[i];

		if (moment->has_step &&
		    (!nearest || distance(moment->step, step) < distance(nearest->step, step)))
			nearest = moment;
	}
	return nearest;
}

const struct memory_moment *torsh_memory_moment_of_mark(const struct memory_moments *moments,
							const char *name)
{
	for (size_t i = 0; i < moments->n; i++) {
		if (moments->items[i].mark && strcmp(moments->items[i].mark, name) == 0)
			return &moments->items[i];
	}
	return NULL;
}

const struct memory_moment *torsh_memory_moment_of_rss(const struct memory_moments *moments)
{
	const struct memory_moment *highest = NULL;

	for (size_t i = 0; i < moments->n; i++) {
		const struct memory_moment *moment = &moments->items[i];

		if (moment->kind == MEMORY_AT_RSS &&
		    (!highest || moment->resident_bytes > highest->resident_bytes))
			highest = moment;
	}
	return highest;
}

const struct memory_moment *torsh_memory_moment_highest(const struct memory_moments *moments,
							uint64_t from_ns, uint64_t to_ns)
{
	const struct memory_moment *highest = NULL;

	for (size_t i = 0; i < moments->n; i++) {
		const struct memory_moment *moment = &moments->items[i];

		if (moment->at_ns >= from_ns && moment->at_ns < to_ns &&
		    (!highest || moment->bytes > highest->bytes))
			highest = moment;
	}
	return highest;
}

/* ---- sums of windows ------------------------------------------------------------------------- */

static void raise_sum(struct window_sum *sum, uint64_t bytes, uint64_t at_ns)
{
	if (sum->is_known && bytes <= sum->bytes)
		return;
	*sum = (struct window_sum){.is_known = true, .bytes = bytes, .at_ns = at_ns};
}

struct window_sum torsh_memory_window_sum(const struct memory_moments *moments, uint64_t from_ns,
					  uint64_t to_ns)
{
	const struct recorded_process *process = moments->process;
	const struct recorded_heap *heap = &process->heap;
	uint64_t before_ns = process->start_ns, outside_bytes = 0;
	struct window_sum sum = {0};

	if (!process->n_moments || !process->moments[0].has_highest || moments->n_damaged)
		return sum;
	if (heap->peak_ns >= from_ns && heap->peak_ns < to_ns)
		raise_sum(&sum, heap->peak_bytes, heap->peak_ns);
	for (size_t i = 0; i < process->n_moments; i++) {
		const struct recorded_moment *moment = &process->moments[i];

		if (moment->highest_ns >= from_ns && moment->highest_ns < to_ns)
			raise_sum(&sum, moment->highest_bytes, moment->highest_ns);
		else if (before_ns < to_ns && moment->at_ns > from_ns &&
			 moment->highest_bytes > outside_bytes)
			outside_bytes = moment->highest_bytes;
		if (moment->at_ns >= from_ns && moment->at_ns < to_ns)
			raise_sum(&sum, moment->bytes, moment->at_ns);
		before_ns = moment->at_ns;
	}
	/* Of what comes after the last moment only the peak of all is known. */
	if (to_ns > before_ns && outside_bytes < heap->peak_bytes)
		outside_bytes = heap->peak_bytes;
	sum.is_exact = sum.is_known && outside_bytes <= sum.bytes;
	return sum;
}
