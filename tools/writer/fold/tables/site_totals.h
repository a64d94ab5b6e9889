/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The totals of the stacks that allocated blocks. Nine of ten stacks of a program that imports
 * modules allocate one block: such a site is 12 bytes, from which its totals are computed. A site
 * with another history has its totals in an array.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_SITE_TOTALS_H
#define TORSH_WRITER_FOLD_TABLES_SITE_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/fold/peak_tracker.h"
#include "tools/writer/fold/scopes.h"

#define HEAP_SCOPES_DIFFER UINT32_MAX
#define SITE_PEAK_BITS 22u
#define SITE_CONTEXT_BITS 12u
#define SITE_SIZE_BITS 20u

/* A stack that allocated blocks. */
struct heap_site {
	uint32_t stack;
	uint32_t is_changed : 1; /* since the last checkpoint */
	uint32_t is_touched : 1; /* since the latest moment */
	uint32_t is_ignored : 1; /* its blocks are marked as not leaked */
	/* a framework's allocator reported that it handed out one of its blocks */
	uint32_t is_of_tensors : 1;
	uint32_t has_totals : 1; /* they are item number totals; else the other fields are valid */
	uint32_t has_block : 1; /* its block was allocated; if not, the fields below are 0 */
	uint32_t is_live : 1; /* the block is */
	uint32_t is_in_peak : 1; /* the block was live at peak number `seen` */
	uint32_t is_counted : 1; /* as an allocation */
	uint32_t is_temporary : 1; /* the block was */
	uint32_t seen : SITE_PEAK_BITS; /* as in site_usage */
	union {
		uint32_t totals;
		struct {
			uint32_t size : SITE_SIZE_BITS; /* of the block */
			uint32_t context : SITE_CONTEXT_BITS;
		};
	};
};

_Static_assert(sizeof(struct heap_site) == 12, "a site with one block is small");

struct site_totals {
	struct site_usage live;
	uint64_t allocs, alloc_bytes;
	uint64_t temporary, temporary_bytes;
	struct scope scope; /* of its blocks' allocations; HEAP_SCOPES_DIFFER: several */
};

/* Where and when the block of a site was allocated. */
struct site_context {
	struct scope scope;
	uint32_t step;
};

struct site_totals_table {
	struct site_totals *items;
	uint32_t n;
	size_t capacity;
	struct site_context *contexts;
	uint32_t n_contexts;
	size_t context_capacity;
};

/* Free the table. */
void torsh_site_totals_destroy(struct site_totals_table *table);

/* Returns the totals of a site. */
struct site_totals torsh_site_totals(const struct site_totals_table *table,
				     const struct heap_site *site);

/* Give a site these totals, in place of those that it had. */
void torsh_site_totals_set(struct site_totals_table *table, struct heap_site *site,
			   const struct site_totals *totals);

/* Slow path of torsh_site_totals_need. */
struct site_totals *torsh_site_totals_add(struct site_totals_table *table, struct heap_site *site);

/* Returns the totals of a site, to be changed; valid until the next call. */
static inline struct site_totals *torsh_site_totals_need(struct site_totals_table *table,
							 struct heap_site *site)
{
	if (__builtin_expect(site->has_totals, 1))
		return &table->items[site->totals];
	return torsh_site_totals_add(table, site);
}

/* Slow path of torsh_site_totals_change. */
void torsh_site_totals_change_one(struct site_totals_table *table, struct heap_site *site,
				  const struct peak_tracker *tracker, uint32_t step, int64_t n,
				  int64_t bytes);

/* Prefetch what torsh_site_totals_change reads, once the site is in the cache. */
static inline void torsh_site_totals_prefetch(const struct site_totals_table *table,
					      const struct heap_site *site)
{
	if (site->has_totals)
		__builtin_prefetch(&table->items[site->totals], 1);
}

/* Apply a site's part of a change, as torsh_site_usage_change. */
static inline void torsh_site_totals_change(struct site_totals_table *table, struct heap_site *site,
					    const struct peak_tracker *tracker, uint32_t step,
					    int64_t n, int64_t bytes)
{
	if (__builtin_expect(site->has_totals, 1))
		torsh_site_usage_change(&table->items[site->totals].live, tracker, step, n, bytes);
	else
		torsh_site_totals_change_one(table, site, tracker, step, n, bytes);
}

static inline void torsh_site_totals_note_label(uint32_t *of_site, uint32_t label, bool is_first)
{
	if (is_first)
		*of_site = label;
	else if (__builtin_expect(*of_site != label, 0))
		*of_site = HEAP_SCOPES_DIFFER;
}

/* Add n allocations in a scope. */
static inline void torsh_site_totals_note(struct site_totals *totals, int64_t n, int64_t bytes,
					  const struct scope *scope)
{
	torsh_site_totals_note_label(&totals->scope.operator, scope->operator, !totals->allocs);
	torsh_site_totals_note_label(&totals->scope.module, scope->module, !totals->allocs);
	totals->allocs += (uint64_t)n;
	totals->alloc_bytes += (uint64_t)bytes;
}

/* Slow path of torsh_site_totals_count. */
void torsh_site_totals_count_one(struct site_totals_table *table, struct heap_site *site,
				 uint64_t size, const struct scope *scope);

/* Count an allocation in a scope. */
static inline void torsh_site_totals_count(struct site_totals_table *table, struct heap_site *site,
					   uint64_t size, const struct scope *scope)
{
	if (__builtin_expect(site->has_totals, 1))
		torsh_site_totals_note(&table->items[site->totals], 1, (int64_t)size, scope);
	else
		torsh_site_totals_count_one(table, site, size, scope);
}

/* Count the blocks and bytes that a sample stands for. */
void torsh_site_totals_count_sample(struct site_totals_table *table, struct heap_site *site,
				    int64_t n, int64_t bytes, const struct scope *scope);

/* Slow path of torsh_site_totals_count_temporary. */
void torsh_site_totals_count_one_temporary(struct site_totals_table *table, struct heap_site *site,
					   uint64_t size);

/* Count a block that was temporary. */
static inline void torsh_site_totals_count_temporary(struct site_totals_table *table,
						     struct heap_site *site, uint64_t size)
{
	struct site_totals *totals;

	if (__builtin_expect(!site->has_totals, 0)) {
		torsh_site_totals_count_one_temporary(table, site, size);
		return;
	}
	totals = &table->items[site->totals];
	totals->temporary++;
	totals->temporary_bytes += size;
}

#endif
