/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/mappings.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/base/containers/array.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#define HUGE_SHIFT 26
#define HUGE_MASK 0x3fu
#define HUGE_DEFAULT (UINT64_C(2) << 20)

struct span {
	uint64_t start, end; /* empty if equal */
};

void torsh_mappings_create(struct mappings *mappings)
{
	*mappings = (struct mappings){.n_sites = 1, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	mappings->sites =
		torsh_array_reserve(NULL, 0, &mappings->site_capacity, sizeof(*mappings->sites));
	torsh_number_index_create(&mappings->site_index);
	torsh_address_ranges_create(&mappings->ranges);
}

void torsh_mappings_destroy(struct mappings *mappings)
{
	torsh_address_ranges_destroy(&mappings->ranges);
	torsh_number_index_destroy(&mappings->site_index);
	free(mappings->sites);
	*mappings = (struct mappings){0};
}

static struct site_stacks stacks_of(const struct mappings *mappings)
{
	return (struct site_stacks){&mappings->sites->stack, sizeof(*mappings->sites)};
}

static uint32_t site_of(struct mappings *mappings, uint32_t stack)
{
	uint32_t site = torsh_site_find(&mappings->site_index, stacks_of(mappings), stack);

	if (site || !stack)
		return site;
	site = mappings->n_sites++;
	mappings->sites = torsh_array_reserve(mappings->sites, site, &mappings->site_capacity,
					      sizeof(*mappings->sites));
	mappings->sites[site].stack = stack;
	torsh_site_add(&mappings->site_index, stacks_of(mappings));
	return site;
}

static struct span span_of(uint64_t start, uint64_t length, uint64_t page_bytes)
{
	uint64_t rounded = (length + page_bytes - 1) & ~(page_bytes - 1);

	if (rounded < length || start + rounded < start)
		return (struct span){0, 0};
	return (struct span){start, start + rounded};
}

static void cut_site(void *context, uint32_t site, int n, uint64_t bytes)
{
	struct mappings *mappings = context;

	torsh_site_usage_change(&mappings->sites[site].live, &mappings->tracker, 0, n,
				-(int64_t)bytes);
}

/* Number of mapped bytes in either span. */
static uint64_t covered_by(const struct mappings *mappings, struct span a, struct span b)
{
	struct span both = {.start = a.start > b.start ? a.start : b.start,
			    .end = a.end < b.end ? a.end : b.end};

	return torsh_address_ranges_covered(&mappings->ranges, a.start, a.end) +
	       torsh_address_ranges_covered(&mappings->ranges, b.start, b.end) -
	       torsh_address_ranges_covered(&mappings->ranges, both.start, both.end);
}

/* End the mappings in `gone` and in the way of `made`, and add `made`, as one change of the sum. */
static void replace_span(struct mappings *mappings, uint64_t stamp, struct span gone,
			 struct span made, uint32_t site)
{
	uint64_t bytes = made.end - made.start;

	torsh_peak_tracker_change(&mappings->tracker, stamp, 0,
				  (int64_t)(bytes - covered_by(mappings, gone, made)));
	torsh_address_ranges_remove(&mappings->ranges, gone.start, gone.end, cut_site, mappings);
	torsh_address_ranges_remove(&mappings->ranges, made.start, made.end, cut_site, mappings);
	if (bytes) {
		torsh_address_ranges_add(&mappings->ranges, made.start, made.end, site);
		torsh_site_usage_change(&mappings->sites[site].live, &mappings->tracker, 0, 1,
					(int64_t)bytes);
	}
	mappings->tracker.n = mappings->ranges.n_ranges;
}

static uint64_t map_page_bytes(const struct mappings *mappings, uint32_t flags)
{
	uint32_t shift = flags >> HUGE_SHIFT & HUGE_MASK;

	if (!(flags & MAP_HUGETLB))
		return mappings->page_bytes;
	return shift ? UINT64_C(1) << shift : HUGE_DEFAULT;
}

static void fold_map(struct mappings *mappings, uint64_t stamp, const struct event_map *map,
		     uint32_t site)
{
	struct span made = span_of(map->address, map->length, map_page_bytes(mappings, map->flags));

	mappings->maps++;
	mappings->sites[site].total_bytes += made.end - made.start;
	replace_span(mappings, stamp, made, made, site);
}

static void fold_unmap(struct mappings *mappings, uint64_t stamp, const struct event_unmap *unmap)
{
	struct span gone = span_of(unmap->address, unmap->length, mappings->page_bytes);

	mappings->unmaps++;
	replace_span(mappings, stamp, gone, (struct span){0, 0}, 0);
}

static void fold_remap(struct mappings *mappings, uint64_t stamp, const struct event_remap *remap,
		       uint32_t site)
{
	struct span old = span_of(remap->old_address, remap->old_length, mappings->page_bytes);
	struct span new = span_of(remap->address, remap->length, mappings->page_bytes);

	if (new.start == old.start &&new.end <= old.end) {
		replace_span(mappings, stamp, (struct span){new.end, old.end}, (struct span){0, 0},
			     0);
		return;
	}
	if (remap->flags & MREMAP_DONTUNMAP)
		old = (struct span){0, 0};
	mappings->sites[site].total_bytes += new.end - new.start;
	replace_span(mappings, stamp, old, new, site);
}

static void fold_break(struct mappings *mappings, uint64_t stamp,
		       const struct event_program_break *moved, uint32_t site)
{
	uint64_t old = span_of(0, moved->old_break, mappings->page_bytes).end;
	uint64_t new = span_of(0, moved->new_break, mappings->page_bytes).end;

	if (new > old) {
		mappings->sites[site].total_bytes += new - old;
		replace_span(mappings, stamp, (struct span){0, 0}, (struct span){old, new}, site);
	} else {
		replace_span(mappings, stamp, (struct span){new, old}, (struct span){0, 0}, 0);
	}
}

void torsh_mappings_fold(struct mappings *mappings, const struct event *event, uint32_t stack)
{
	switch (event->id) {
	case EVENT_MAP:
		fold_map(mappings, event->stamp, &event->map, site_of(mappings, stack));
		break;
	case EVENT_UNMAP:
		fold_unmap(mappings, event->stamp, &event->unmap);
		break;
	case EVENT_REMAP:
		fold_remap(mappings, event->stamp, &event->remap, site_of(mappings, stack));
		break;
	case EVENT_PROGRAM_BREAK:
		fold_break(mappings, event->stamp, &event->program_break, site_of(mappings, stack));
		break;
	case EVENT_ADVISE:
		mappings->advised_bytes += event->advise.length;
		break;
	}
}
