/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/device/device_work.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/timeline/device/device_activity.h"

#define PAGE_NUMBERS 64u /* correlation ids per page: the bits of its mask */

/*
 * A launch's activities in 32 bits: whether there were any, and if it is exactly one kernel, its
 * duration in ns. With IS_WHOLE the lower bits are an index of a full entry.
 */
#define IS_WHOLE (UINT32_C(1) << 31)
#define IS_LAUNCHED (UINT32_C(1) << 30)
#define HAS_ONE (UINT32_C(1) << 29)
#define NS_MASK (HAS_ONE - 1)

/* The ids of a page that occurred, in order: ids are dense, but not all of them are launches. */
struct device_page {
	uint64_t present;
	uint32_t *items;
};

/*
 * Marked operators have numbers of their own, which share the table: launches hardly reach the
 * upper half.
 */
static uint32_t accelerated_key(uint32_t number)
{
	return number | UINT32_C(1) << 31;
}

void torsh_device_work_create(struct device_work *work)
{
	*work = (struct device_work){0};
	torsh_key_index_create(&work->index);
	torsh_graph_nodes_create(&work->captured);
}

void torsh_device_work_destroy(struct device_work *work)
{
	for (size_t i = 0; i < work->n; i++)
		free(work->pages[i].items);
	torsh_key_index_destroy(&work->index);
	torsh_graph_nodes_destroy(&work->captured);
	free(work->pages);
	free(work->whole);
}

/* ---- one launch's sums ----------------------------------------------------------------------- */

static struct device_caused unpack(const struct device_work *work, uint32_t item)
{
	if (item & IS_WHOLE)
		return work->whole[item & ~IS_WHOLE];
	return (struct device_caused){.ns = item & NS_MASK,
				      .n = (item & HAS_ONE) != 0,
				      .is_launched = (item & IS_LAUNCHED) != 0};
}

static void pack(struct device_work *work, uint32_t *item, const struct device_caused *caused)
{
	if (*item & IS_WHOLE) {
		work->whole[*item & ~IS_WHOLE] = *caused;
	} else if (caused->n <= 1 && !caused->n_untimed && caused->ns <= NS_MASK) {
		*item = (caused->is_launched ? IS_LAUNCHED : 0) | (caused->n ? HAS_ONE : 0) |
			(uint32_t)caused->ns;
	} else {
		work->whole = torsh_array_reserve(work->whole, work->n_whole, &work->n_whole_room,
						  sizeof(*work->whole));
		work->whole[work->n_whole] = *caused;
		*item = IS_WHOLE | (uint32_t)work->n_whole++;
	}
}

static uint64_t page_key(uint32_t correlation)
{
	return correlation / PAGE_NUMBERS + UINT64_C(1);
}

static struct device_page *find_page(struct device_work *work, uint32_t correlation)
{
	struct key_slot *slot = torsh_key_index_find(&work->index, page_key(correlation));

	if (slot->key)
		return &work->pages[slot->number];
	work->pages =
		torsh_array_reserve(work->pages, work->n, &work->n_room, sizeof(*work->pages));
	work->pages[work->n] = (struct device_page){0};
	torsh_key_index_fill(&work->index, slot, page_key(correlation), (uint32_t)work->n);
	return &work->pages[work->n++];
}

/* Returns the index of an id among its page's items, or the index to insert it at. */
static size_t place_in(const struct device_page *page, uint32_t correlation)
{
	uint64_t before = (UINT64_C(1) << correlation % PAGE_NUMBERS) - 1;

	return (size_t)__builtin_popcountll(page->present & before);
}

static uint32_t *find_item(struct device_work *work, uint32_t correlation)
{
	struct device_page *page = find_page(work, correlation);
	size_t n = (size_t)__builtin_popcountll(page->present), place = place_in(page, correlation);
	uint64_t bit = UINT64_C(1) << correlation % PAGE_NUMBERS;

	if (page->present & bit)
		return &page->items[place];
	/* The capacity is n rounded up to a power of two: there is none, or it is full. */
	if (!page->present || (n & (n - 1)) == 0)
		page->items =
			torsh_need(reallocarray(page->items, n ? 2 * n : 1, sizeof(*page->items)));
	memmove(page->items + place + 1, page->items + place, (n - place) * sizeof(*page->items));
	page->items[place] = 0;
	page->present |= bit;
	return &page->items[place];
}

static void add(struct device_work *work, uint32_t correlation, struct device_caused more)
{
	uint32_t *item = find_item(work, correlation);
	struct device_caused caused = unpack(work, *item);

	caused.ns += more.ns;
	caused.n += more.n && caused.n < CAUSED_MAX;
	caused.is_launched |= more.is_launched;
	caused.n_untimed += more.n_untimed;
	pack(work, item, &caused);
}

/* ---- what comes ------------------------------------------------------------------------------ */

static void add_span(struct device_work *work, const struct activity_record *record)
{
	struct device_caused one = {.n = 1, .ns = record->duration_ns};

	/* A node that was captured in an operator counts for that operator, not for the launch. */
	if (torsh_graph_nodes_find(&work->captured, record->node))
		one.ns = 0;
	work->is_seen = true;
	work->n_spans++;
	if (record->correlation)
		add(work, record->correlation, one);
}

void torsh_device_work_add(struct device_work *work, const struct event *event, bool is_in_operator)
{
	struct activity_record record;

	if (event->id == EVENT_DEVICE_MODE) {
		work->is_reported = true;
		work->is_seen = work->is_seen || event->device_mode.mode != DEVICE_HOST_ONLY;
	}
	if (event->id == EVENT_LAUNCH) {
		work->n_launches++;
		if (event->launch.correlation)
			add(work, event->launch.correlation,
			    (struct device_caused){.is_launched = 1});
	}
	if (event->id == EVENT_GRAPH_NODE)
		torsh_graph_nodes_see(&work->captured, &event->graph_node, is_in_operator);
	if (event->id == EVENT_OP_ACCELERATED) {
		work->is_seen = true;
		add(work, accelerated_key(event->op_accelerated.number),
		    (struct device_caused){.ns = event->op_accelerated.own_ns});
	}
	if (torsh_activity_untimed(event, &record) && record.correlation)
		add(work, record.correlation, (struct device_caused){.n_untimed = 1});
	if (torsh_activity_record(event, &record))
		add_span(work, &record);
}

/*
 * ---- what is queried ---------------------------------------------------------------------------
 */

struct device_caused torsh_device_work_by(const struct device_work *work, uint32_t correlation)
{
	const struct key_slot *slot =
		correlation ? torsh_key_index_find(&work->index, page_key(correlation)) : NULL;
	const struct device_page *page = slot && slot->key ? &work->pages[slot->number] : NULL;

	if (!page || !(page->present >> correlation % PAGE_NUMBERS & 1))
		return (struct device_caused){0};
	return unpack(work, page->items[place_in(page, correlation)]);
}

uint64_t torsh_device_work_marked(const struct device_work *work, uint32_t number)
{
	return torsh_device_work_of(work, accelerated_key(number));
}

uint64_t torsh_device_work_of(const struct device_work *work, uint32_t correlation)
{
	return torsh_device_work_by(work, correlation).ns;
}
