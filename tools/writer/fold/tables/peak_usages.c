/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/peak_usages.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"

/*
 * The code of a site, from the highest bit: it has an item, whose number follows; it changed since
 * the peak and is in the list of those; else its block is live; was live at the peak, only where it
 * changed since; the number of its step; its size. 0: the site has no usage.
 */
#define IS_ITEM (1u << 31)
#define IS_CHANGED (1u << 30)
#define IS_LIVE (1u << 29)
#define IS_IN_PEAK (1u << 28)
#define SIZE_BITS 20u
#define SIZE_MASK ((1u << SIZE_BITS) - 1)
#define STEP_MASK ((1u << PEAK_USAGES_STEP_BITS) - 1)
#define ITEM_MASK (IS_CHANGED - 1)
#define LATEST_STEPS 4u /* that are searched; an older one is added again */

_Static_assert(SIZE_BITS + PEAK_USAGES_STEP_BITS == 28, "a step and a size fit below the flags");

void torsh_peak_usages_destroy(struct peak_usages *usages)
{
	free(usages->codes);
	free(usages->items);
	free(usages->changed);
	*usages = (struct peak_usages){0};
}

/* ---- items ----------------------------------------------------------------------------------- */

static bool is_empty(const struct site_usage *usage)
{
	return !usage->n && !usage->bytes;
}

static uint32_t add_item(struct peak_usages *usages, const struct site_usage *usage)
{
	uint32_t number = usages->free_item;

	if (number) {
		usages->free_item = usages->items[number].seen;
	} else {
		/* Item 0 is not used. */
		number = usages->n_items ? usages->n_items : 1;
		for (uint32_t i = usages->n_items; i <= number; i++)
			usages->items = torsh_array_reserve(
				usages->items, i, &usages->item_capacity, sizeof(*usages->items));
		usages->n_items = number + 1;
	}
	usages->items[number] = *usage;
	return number;
}

static void remove_item(struct peak_usages *usages, uint32_t number)
{
	usages->items[number].seen = usages->free_item;
	usages->free_item = number;
}

/* ---- sites with one block -------------------------------------------------------------------- */

/* Returns false if there is no number left. */
static bool find_step(struct peak_usages *usages, uint32_t step, uint32_t *number)
{
	uint32_t n = usages->n_steps;

	for (uint32_t i = 1; i <= LATEST_STEPS && i <= n; i++) {
		if (usages->steps[n - i] == step) {
			*number = n - i;
			return true;
		}
	}
	if (n > STEP_MASK)
		return false;
	usages->steps[n] = step;
	usages->n_steps++;
	*number = n;
	return true;
}

/* Returns the code of a block, without flags; 0 and *is_possible false if it has none. */
static uint32_t code_of(struct peak_usages *usages, uint64_t size, uint32_t step, bool *is_possible)
{
	uint32_t number = 0;

	*is_possible = size <= SIZE_MASK && find_step(usages, step, &number);
	return *is_possible ? number << SIZE_BITS | (uint32_t)size : 0;
}

/* A site without an item; `seen` is the peak's number if it changed since. */
static struct site_usage usage_of(const struct peak_usages *usages, uint32_t code, uint32_t peak)
{
	uint32_t step = usages->steps[code >> SIZE_BITS & STEP_MASK];
	struct site_usage usage = {.seen = peak - 1};

	if (code & IS_LIVE) {
		usage.bytes = code & SIZE_MASK;
		usage.n = 1;
		usage.first_step = usage.last_step = step;
	}
	if (!(code & IS_CHANGED) || usages->peak != peak)
		return usage;
	usage.seen = peak;
	if (code & IS_IN_PEAK) {
		usage.base_bytes = code & SIZE_MASK;
		usage.base_n = 1;
		usage.base_first_step = usage.base_last_step = step;
	}
	return usage;
}

/* Returns false if the site needs an item for the change. */
static bool change_one(struct peak_usages *usages, uint32_t *code, uint32_t step, int64_t n,
		       int64_t bytes)
{
	uint32_t block;
	bool is_possible;

	if (n == 1 && bytes >= 0 && !(*code & (IS_LIVE | IS_IN_PEAK))) {
		block = code_of(usages, (uint64_t)bytes, step, &is_possible);
		if (is_possible)
			*code = IS_CHANGED | IS_LIVE | block;
		return is_possible;
	}
	if (n != -1 || !(*code & IS_LIVE) || bytes != -(int64_t)(*code & SIZE_MASK))
		return false;
	*code = *code & IS_IN_PEAK ? *code & ~IS_LIVE : IS_CHANGED;
	return true;
}

/* ---- all sites ------------------------------------------------------------------------------- */

static uint32_t *code_at(struct peak_usages *usages, uint32_t site)
{
	usages->codes = torsh_array_extend(usages->codes, (size_t)site + 1, &usages->n_codes,
					   sizeof(*usages->codes));
	return &usages->codes[site];
}

/* There is a new peak: each site has now what it held there. */
static void begin_peak(struct peak_usages *usages, uint32_t peak)
{
	for (uint32_t i = 0; i < usages->n_changed; i++) {
		uint32_t *code = &usages->codes[usages->changed[i]], item = *code & ITEM_MASK;

		if (!(*code & IS_ITEM)) {
			*code = *code & IS_LIVE ? *code & ~(IS_CHANGED | IS_IN_PEAK) : 0;
		} else if (is_empty(&usages->items[item])) {
			remove_item(usages, item);
			*code = 0;
		} else {
			*code &= ~IS_CHANGED;
		}
	}
	usages->n_changed = 0;
	usages->peak = peak;
}

static void mark_changed(struct peak_usages *usages, uint32_t site, uint32_t *code)
{
	usages->changed = torsh_array_reserve(usages->changed, usages->n_changed,
					      &usages->changed_capacity, sizeof(*usages->changed));
	usages->changed[usages->n_changed++] = site;
	if (!(*code & IS_ITEM) && *code & IS_LIVE)
		*code |= IS_IN_PEAK;
	*code |= IS_CHANGED;
}

void torsh_peak_usages_change(struct peak_usages *usages, uint32_t site,
			      const struct peak_tracker *tracker, uint32_t step, int64_t n,
			      int64_t bytes)
{
	uint32_t *code, item;
	struct site_usage usage;

	if (usages->peak != tracker->peak_number)
		begin_peak(usages, tracker->peak_number);
	code = code_at(usages, site);
	if (!(*code & IS_CHANGED))
		mark_changed(usages, site, code);
	if (!(*code & IS_ITEM)) {
		if (change_one(usages, code, step, n, bytes))
			return;
		usage = usage_of(usages, *code, usages->peak);
		*code = IS_ITEM | IS_CHANGED | add_item(usages, &usage);
	}
	item = *code & ITEM_MASK;
	torsh_site_usage_change(&usages->items[item], tracker, step, n, bytes);
	usage = usages->items[item];
	if (is_empty(&usage) && !usage.base_n && !usage.base_bytes) {
		remove_item(usages, item);
		*code = IS_CHANGED;
	}
}

static bool is_one(const struct site_usage *usage, bool is_changed)
{
	if (usage->n > 1 || usage->first_step != usage->last_step || (!usage->n && usage->bytes))
		return false;
	if (!is_changed || (!usage->base_n && !usage->base_bytes))
		return usage->n == 1;
	return usage->base_n == 1 && usage->base_first_step == usage->base_last_step &&
	       (!usage->n ||
		(usage->base_bytes == usage->bytes && usage->base_first_step == usage->first_step));
}

void torsh_peak_usages_set(struct peak_usages *usages, uint32_t site,
			   const struct peak_tracker *tracker, const struct site_usage *usage)
{
	bool is_changed = usage->seen == tracker->peak_number, is_in_peak, is_possible = false;
	uint32_t *code = code_at(usages, site), block;

	usages->peak = tracker->peak_number;
	if (is_changed)
		mark_changed(usages, site, code);
	if (is_one(usage, is_changed)) {
		is_in_peak = is_changed && usage->base_n;
		block = code_of(usages, usage->n ? usage->bytes : usage->base_bytes,
				usage->n ? usage->first_step : usage->base_first_step,
				&is_possible);
		if (is_possible)
			*code |= block | (usage->n ? IS_LIVE : 0) | (is_in_peak ? IS_IN_PEAK : 0);
	}
	if (!is_possible)
		*code |= IS_ITEM | add_item(usages, usage);
}

struct site_usage torsh_peak_usages_get(const struct peak_usages *usages, uint32_t site,
					const struct peak_tracker *tracker)
{
	uint32_t code = site < usages->n_codes ? usages->codes[site] : 0;

	return code & IS_ITEM ? usages->items[code & ITEM_MASK]
			      : usage_of(usages, code, tracker->peak_number);
}
