/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/site_totals.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

/* Contexts that are searched; an older one is added again. */
#define LATEST_CONTEXTS 8u

void torsh_site_totals_destroy(struct site_totals_table *table)
{
	free(table->items);
	free(table->contexts);
	*table = (struct site_totals_table){0};
}

static struct site_totals totals_of_one(const struct site_totals_table *table,
					const struct heap_site *site)
{
	const struct site_context *context = &table->contexts[site->context];
	uint64_t size = site->size;
	struct site_totals totals = {
		.live = {.bytes = site->is_live ? size : 0,
			 .n = site->is_live,
			 .seen = site->seen,
			 .first_step = context->step,
			 .last_step = context->step},
	};

	if (site->is_in_peak) {
		totals.live.base_bytes = size;
		totals.live.base_n = 1;
		totals.live.base_first_step = totals.live.base_last_step = context->step;
	}
	if (site->is_counted) {
		totals.allocs = 1;
		totals.alloc_bytes = size;
		totals.scope = context->scope;
	}
	if (site->is_temporary) {
		totals.temporary = 1;
		totals.temporary_bytes = size;
	}
	return totals;
}

struct site_totals torsh_site_totals(const struct site_totals_table *table,
				     const struct heap_site *site)
{
	if (site->has_totals)
		return table->items[site->totals];
	return site->has_block ? totals_of_one(table, site) : (struct site_totals){0};
}

void torsh_site_totals_set(struct site_totals_table *table, struct heap_site *site,
			   const struct site_totals *totals)
{
	uint32_t number = table->n++;

	table->items =
		torsh_array_reserve(table->items, number, &table->capacity, sizeof(*table->items));
	table->items[number] = *totals;
	site->has_totals = true;
	site->totals = number;
}

struct site_totals *torsh_site_totals_add(struct site_totals_table *table, struct heap_site *site)
{
	struct site_totals totals = torsh_site_totals(table, site);

	torsh_site_totals_set(table, site, &totals);
	return &table->items[site->totals];
}

static bool is_same(const struct site_context *a, const struct site_context *b)
{
	return a->scope.operator== b->scope.operator&& a->scope.module == b->scope.module &&
		a->step == b->step;
}

/* Returns false if there is no number left. */
static bool set_context(struct site_totals_table *table, struct heap_site *site,
			const struct site_context *context)
{
	uint32_t n = table->n_contexts;

	for (uint32_t i = 1; i <= LATEST_CONTEXTS && i <= n; i++) {
		if (is_same(&table->contexts[n - i], context)) {
			site->context = n - i;
			return true;
		}
	}
	if (n >> SITE_CONTEXT_BITS)
		return false;
	table->contexts = torsh_array_reserve(table->contexts, n, &table->context_capacity,
					      sizeof(*table->contexts));
	table->contexts[table->n_contexts++] = *context;
	site->context = n;
	return true;
}

/* Returns false if the site needs totals for the change. */
static bool change_one(struct site_totals_table *table, struct heap_site *site, uint32_t peak,
		       uint32_t step, int64_t n, int64_t bytes)
{
	if (peak >> SITE_PEAK_BITS)
		return false;
	if (n == 1 && !site->has_block && bytes >= 0 && bytes >> SITE_SIZE_BITS == 0 &&
	    set_context(table, site, &(struct site_context){.step = step})) {
		site->has_block = site->is_live = true;
		site->size = (uint32_t)bytes & ((1u << SITE_SIZE_BITS) - 1);
		site->seen = peak & ((1u << SITE_PEAK_BITS) - 1);
		return true;
	}
	if (n != -1 || !site->is_live || bytes != -(int64_t)site->size)
		return false;
	site->is_in_peak |= site->seen != peak;
	site->seen = peak & ((1u << SITE_PEAK_BITS) - 1);
	site->is_live = false;
	return true;
}

void torsh_site_totals_change_one(struct site_totals_table *table, struct heap_site *site,
				  const struct peak_tracker *tracker, uint32_t step, int64_t n,
				  int64_t bytes)
{
	if (!change_one(table, site, tracker->peak_number, step, n, bytes))
		torsh_site_usage_change(&torsh_site_totals_add(table, site)->live, tracker, step, n,
					bytes);
}

static bool count_one(struct site_totals_table *table, struct heap_site *site, uint64_t size,
		      const struct scope *scope)
{
	if (!site->has_block || site->is_counted || size != site->size)
		return false;
	if ((scope->operator| scope->module) &&
	    !set_context(table, site,
			 &(struct site_context){.scope = *scope,
						.step = table->contexts[site->context].step}))
		return false;
	site->is_counted = true;
	return true;
}

void torsh_site_totals_count_sample(struct site_totals_table *table, struct heap_site *site,
				    int64_t n, int64_t bytes, const struct scope *scope)
{
	torsh_site_totals_note(torsh_site_totals_need(table, site), n, bytes, scope);
}

void torsh_site_totals_count_one(struct site_totals_table *table, struct heap_site *site,
				 uint64_t size, const struct scope *scope)
{
	if (!count_one(table, site, size, scope))
		torsh_site_totals_count_sample(table, site, 1, (int64_t)size, scope);
}

void torsh_site_totals_count_one_temporary(struct site_totals_table *table, struct heap_site *site,
					   uint64_t size)
{
	struct site_totals *totals;

	if (site->has_block && !site->is_temporary && size == site->size) {
		site->is_temporary = true;
		return;
	}
	totals = torsh_site_totals_need(table, site);
	totals->temporary++;
	totals->temporary_bytes += size;
}
