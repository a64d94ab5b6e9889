/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/heap_moments.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/fold/heap_state.h"

#define WORD_BITS 64u

/*
 * A usage in 32 bits, from the lowest: bytes, blocks. With the highest bit it is the number of an
 * item: few sites have many blocks or bytes.
 */
#define USAGE_BYTES_BITS 24u
#define USAGE_BLOCKS_BITS 7u
#define USAGE_IS_ITEM (1u << (USAGE_BYTES_BITS + USAGE_BLOCKS_BITS))

void torsh_moments_destroy(struct moments *moments)
{
	for (uint32_t i = 0; i < moments->n; i++)
		torsh_moment_sites_destroy(&moments->items[i].sites);
	free(moments->touched);
	free(moments->latest);
	free(moments->latest_usages);
	*moments = (struct moments){0};
}

void torsh_moments_touch(struct moments *moments, uint32_t site)
{
	if (site >= moments->n_touched) {
		uint32_t n = moments->n_touched ? moments->n_touched * 2 : 1024;
		uint64_t *touched;

		while (n <= site)
			n *= 2;
		touched = torsh_memory_new(n / WORD_BITS, sizeof(*touched));
		if (moments->n_touched)
			memcpy(touched, moments->touched, moments->n_touched / 8);
		free(moments->touched);
		moments->touched = touched;
		moments->n_touched = n;
	}
	moments->touched[site / WORD_BITS] |= UINT64_C(1) << site % WORD_BITS;
}

/* ---- which sites changed --------------------------------------------------------------------- */

static uint32_t add_latest(struct moments *moments)
{
	uint32_t number = moments->free_latest;

	if (number) {
		moments->free_latest = moments->latest[number].site;
		return number;
	}
	/* Item 0 is not used. */
	number = moments->n_latest ? moments->n_latest : 1;
	for (uint32_t i = moments->n_latest; i <= number; i++)
		moments->latest = torsh_array_reserve(moments->latest, i, &moments->latest_capacity,
						      sizeof(*moments->latest));
	moments->n_latest = number + 1;
	return number;
}

static void remove_latest(struct moments *moments, uint32_t number)
{
	moments->latest[number].site = moments->free_latest;
	moments->free_latest = number;
}

static bool is_small(const struct moment_site *usage)
{
	return usage->bytes >> USAGE_BYTES_BITS == 0 && usage->n >> USAGE_BLOCKS_BITS == 0;
}

static uint32_t small_usage(const struct moment_site *usage)
{
	return usage->n << USAGE_BYTES_BITS | (uint32_t)usage->bytes;
}

/* Returns true if the site is not as the latest moment has it; updates that. */
static bool note_site(struct moments *moments, const struct moment_site *now)
{
	uint32_t *usage = &moments->latest_usages[now->site], number = *usage & ~USAGE_IS_ITEM;
	const struct moment_site *latest = *usage & USAGE_IS_ITEM ? &moments->latest[number] : NULL;

	if (latest ? latest->bytes == now->bytes && latest->n == now->n
		   : is_small(now) && small_usage(now) == *usage)
		return false;
	if (is_small(now)) {
		if (latest)
			remove_latest(moments, number);
		*usage = small_usage(now);
		return true;
	}
	if (!latest)
		number = add_latest(moments);
	moments->latest[number] = *now;
	*usage = number | USAGE_IS_ITEM;
	return true;
}

/* The site's usage; from now on its changes are noted again. */
static struct moment_site now_at(struct heap *heap, uint32_t number)
{
	struct site_totals totals = torsh_heap_totals(heap, number);

	heap->sites[number].is_touched = false;
	return (struct moment_site){
		.site = number, .bytes = totals.live.bytes, .n = (uint32_t)totals.live.n};
}

/* Gives the moment its list. */
static void collect_sites(struct heap *heap, struct moment *moment)
{
	struct moments *moments = &heap->moments;

	if (!moments->n_touched)
		return;
	moments->latest_usages =
		torsh_array_extend(moments->latest_usages, heap->n_sites, &moments->n_latest_usages,
				   sizeof(*moments->latest_usages));
	for (uint32_t i = 0; i < moments->n_touched / WORD_BITS; i++) {
		for (uint64_t bits = moments->touched[i]; bits; bits &= bits - 1) {
			struct moment_site now =
				now_at(heap, i * WORD_BITS + (uint32_t)__builtin_ctzll(bits));

			if (note_site(moments, &now))
				torsh_moment_sites_add(&moment->sites, &now);
		}
		moments->touched[i] = 0;
	}
	torsh_moment_sites_end(&moment->sites);
	moments->n_sites += moment->sites.n;
}

/* ---- fewer moments --------------------------------------------------------------------------- */

/* The later one has what both have. */
static void merge_highest(struct moment *to, const struct moment *from)
{
	if (from->highest_bytes < to->highest_bytes)
		return;
	to->highest_bytes = from->highest_bytes;
	to->highest_stamp = from->highest_stamp;
}

/* Put the earlier list's sites that the later one lacks into that. */
static void merge_sites(struct moment *to, const struct moment *from)
{
	struct moment_sites_reader earlier = torsh_moment_sites_read(&from->sites),
				   later = torsh_moment_sites_read(&to->sites);
	struct moment_site before, after;
	bool has_before = torsh_moment_sites_next(&earlier, &before),
	     has_after = torsh_moment_sites_next(&later, &after);
	struct moment_sites merged = {0};

	merge_highest(to, from);
	if (!has_before)
		return;
	while (has_before || has_after) {
		if (!has_after || (has_before && before.site < after.site)) {
			torsh_moment_sites_add(&merged, &before);
			has_before = torsh_moment_sites_next(&earlier, &before);
			continue;
		}
		if (has_before && before.site == after.site)
			has_before = torsh_moment_sites_next(&earlier, &before);
		torsh_moment_sites_add(&merged, &after);
		has_after = torsh_moment_sites_next(&later, &after);
	}
	torsh_moment_sites_end(&merged);
	torsh_moment_sites_destroy(&to->sites);
	to->sites = merged;
}

/* Remove every second moment of a kind; the last of all stays. Returns the number of those. */
static uint32_t thin_out(struct moments *moments, enum moment_kind kind)
{
	uint32_t n = 0, n_kept = 0, n_of_kind = 0;
	struct moment *before = NULL;

	moments->n_sites = 0;
	for (uint32_t i = 0; i < moments->n; i++) {
		struct moment item = moments->items[i];

		if (before) {
			merge_sites(&item, before);
			torsh_moment_sites_destroy(&before->sites);
			before = NULL;
		}
		if (item.kind == kind && n_of_kind++ % 2 && i + 1 < moments->n) {
			moments->items[i] = item;
			before = &moments->items[i];
			n++;
			continue;
		}
		moments->n_sites += item.sites.n;
		moments->items[n_kept++] = item;
	}
	moments->n = n_kept;
	moments->n_of[kind] -= n;
	if (moments->strides[kind] <= UINT64_MAX / 2)
		moments->strides[kind] *= 2;
	return n;
}

/* Keep all lists together below their bound. */
static void limit_sites(const struct heap *heap, struct moments *moments)
{
	uint32_t n = 1;

	while (n && moments->n_sites > MOMENTS_SITES + 2 * (uint64_t)heap->n_sites) {
		n = 0;
		for (uint32_t kind = 0; kind < N_MOMENT_KINDS; kind++)
			n += moments->n_of[kind] > 1 ? thin_out(moments, kind) : 0;
	}
}

/* ---- taking one ------------------------------------------------------------------------------ */

static void take(struct heap *heap, uint64_t stamp, const struct moment_event *event)
{
	struct moments *moments = &heap->moments;
	struct moment moment = {.stamp = stamp,
				.bytes = heap->tracker.bytes,
				.n = heap->tracker.n,
				.kind = event->kind,
				.name = event->name,
				.n_steps = event->n_steps,
				.resident_bytes = event->resident_bytes,
				.is_changed = true};

	if (moments->n_of[event->kind] == MOMENTS_OF_KIND)
		thin_out(moments, event->kind);
	torsh_peak_tracker_next_moment(&heap->tracker, stamp, &moment.highest_bytes,
				       &moment.highest_stamp);
	moment.number = ++moments->n_taken;
	collect_sites(heap, &moment);
	moments->items[moments->n++] = moment;
	moments->n_of[event->kind]++;
	limit_sites(heap, moments);
}

void torsh_moments_point(struct heap *heap, uint64_t stamp, uint64_t interval)
{
	struct moments *moments = &heap->moments;
	uint64_t *stride = &moments->strides[MOMENT_BY_TIME];

	if (stamp < moments->next_stamp)
		return;
	if (!*stride)
		*stride = interval;
	take(heap, stamp, &(struct moment_event){.kind = MOMENT_BY_TIME});
	moments->next_stamp = stamp + *stride < stamp ? UINT64_MAX : stamp + *stride;
}

/* Remove the first moment of a kind, which is not the last of all. */
static void remove_first(struct moments *moments, enum moment_kind kind)
{
	uint32_t i = 0;

	while (moments->items[i].kind != kind)
		i++;
	moments->n_sites -= moments->items[i].sites.n + moments->items[i + 1].sites.n;
	merge_sites(&moments->items[i + 1], &moments->items[i]);
	moments->n_sites += moments->items[i + 1].sites.n;
	torsh_moment_sites_destroy(&moments->items[i].sites);
	memmove(&moments->items[i], &moments->items[i + 1],
		(--moments->n - i) * sizeof(*moments->items));
	moments->n_of[kind]--;
}

void torsh_moments_resident(struct heap *heap, uint64_t stamp, uint64_t resident_bytes)
{
	take(heap, stamp,
	     &(struct moment_event){.kind = MOMENT_BY_RESIDENT, .resident_bytes = resident_bytes});
	if (heap->moments.n_of[MOMENT_BY_RESIDENT] > 1)
		remove_first(&heap->moments, MOMENT_BY_RESIDENT);
}

void torsh_moments_event(struct heap *heap, uint64_t stamp, const struct moment_event *event)
{
	struct moments *moments = &heap->moments;
	uint64_t *stride = &moments->strides[event->kind];

	if (!*stride)
		*stride = 1;
	if (moments->n_seen[event->kind]++ % *stride == 0)
		take(heap, stamp, event);
}
