/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the sites of a process hold now and held at the latest peak of a sum that they are part of
 * (peak_tracker.h), for a process whose stacks are many and mostly have one block: 4 bytes a site.
 * Sites with another history have an item, and one that holds nothing and held nothing at the peak
 * has none. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_PEAK_USAGES_H
#define TORSH_WRITER_FOLD_TABLES_PEAK_USAGES_H

#include <stddef.h>
#include <stdint.h>

#include "tools/writer/fold/peak_tracker.h"

#define PEAK_USAGES_STEP_BITS 8u

/* A zeroed one is empty. */
struct peak_usages {
	uint32_t *codes; /* by site, n_codes of them; see peak_usages.c */
	size_t n_codes;
	struct site_usage *items; /* [0] is not used */
	uint32_t n_items;
	size_t item_capacity;
	uint32_t free_item; /* its `seen` is the number of the next; 0: none */
	uint32_t *changed; /* sites that changed since the peak */
	uint32_t n_changed;
	size_t changed_capacity;
	uint32_t peak; /* the peak's number, as of the last change */
	uint32_t steps[1u << PEAK_USAGES_STEP_BITS]; /* of sites without an item */
	uint32_t n_steps;
};

/* Free the usages. */
void torsh_peak_usages_destroy(struct peak_usages *usages);

/* Set the usage of a site that has none; the tracker has settled and none of them changed since. */
void torsh_peak_usages_set(struct peak_usages *usages, uint32_t site,
			   const struct peak_tracker *tracker, const struct site_usage *usage);

/* Apply a site's part of a change, as torsh_site_usage_change. */
void torsh_peak_usages_change(struct peak_usages *usages, uint32_t site,
			      const struct peak_tracker *tracker, uint32_t step, int64_t n,
			      int64_t bytes);

/* Returns a site's usage; `seen` is as if each change were noted in it. */
struct site_usage torsh_peak_usages_get(const struct peak_usages *usages, uint32_t site,
					const struct peak_tracker *tracker);

#endif
