/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/mappings.h"

#include <stdlib.h>
#include <string.h>
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
	free(mappings->segments);
	for (size_t i = 0; i < mappings->n_paths; i++)
		free(mappings->paths[i]);
	free(mappings->paths);
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

/* ---- what is mapped -------------------------------------------------------------------------- */

static enum mapped_as kind_of(const struct event_map *map)
{
	bool is_shared = map->flags & MAP_SHARED;

	if (map->flags & MAP_OF_SYSTEM_V)
		return MAPPED_SYSTEM_V;
	if (map->descriptor < 0)
		return is_shared ? MAPPED_SHARED : MAPPED_PRIVATE;
	return is_shared ? MAPPED_SHARED_FILE : MAPPED_FILE;
}

/* Returns the number of a path, which is freed or kept. */
static uint32_t number_path(struct mappings *mappings, char *path)
{
	for (size_t i = 0; i < mappings->n_paths; i++) {
		if (strcmp(mappings->paths[i], path) == 0) {
			free(path);
			return (uint32_t)i + 1;
		}
	}
	mappings->paths = torsh_array_reserve(mappings->paths, mappings->n_paths,
					      &mappings->path_capacity, sizeof(*mappings->paths));
	mappings->paths[mappings->n_paths] = path;
	return (uint32_t)++mappings->n_paths;
}

/* A path that can't be read leaves it open whether it is that of the site's other files. */
static void note_path(struct mappings *mappings, struct map_site *site, uint64_t address)
{
	char *path = NULL;
	uint32_t number;

	if (!mappings->path_at || site->path == MAP_PATH_SEVERAL)
		return;
	if (mappings->n_looked_up++ < MAP_PATHS_MAX)
		path = mappings->path_at(mappings->path_context, address);
	number = path ? number_path(mappings, path) : MAP_PATH_SEVERAL;
	if (site->kinds & (MAPPED_FILE | MAPPED_SHARED_FILE) && site->path != number)
		site->path = MAP_PATH_SEVERAL;
	else
		site->path = path ? number : MAP_PATH_UNKNOWN;
}

static void note_kind(struct mappings *mappings, const struct event_map *map, uint32_t number)
{
	struct map_site *site = &mappings->sites[number];
	enum mapped_as kind = kind_of(map);

	if (kind == MAPPED_FILE || kind == MAPPED_SHARED_FILE)
		note_path(mappings, site, map->address);
	site->kinds |= kind;
}

/* ---- segments of System V -------------------------------------------------------------------- */

static void add_segment(struct mappings *mappings, struct span made)
{
	size_t i = 0;

	while (i < mappings->n_segments && mappings->segments[i].start != made.start)
		i++;
	if (i == mappings->n_segments) {
		mappings->segments =
			torsh_array_reserve(mappings->segments, i, &mappings->segment_capacity,
					    sizeof(*mappings->segments));
		mappings->n_segments++;
	}
	mappings->segments[i] = (struct map_segment){.start = made.start, .end = made.end};
}

/* Returns the next part of a segment from address on that is still mapped; empty: there is none. */
static struct span part_of(const struct mappings *mappings, const struct map_segment *segment,
			   uint64_t address)
{
	const struct address_range *range;

	while ((range = torsh_address_ranges_above(&mappings->ranges, address)) &&
	       range->start < segment->end) {
		uint64_t start = range->start > segment->start ? range->start : segment->start,
			 end = range->end < segment->end ? range->end : segment->end;

		if (mappings->sites[range->owner].kinds & MAPPED_SYSTEM_V)
			return (struct span){start, end};
		address = range->end;
	}
	return (struct span){0, 0};
}

/* shmdt leaves what was mapped in place of a part of the segment. */
static void detach(struct mappings *mappings, uint64_t stamp, uint64_t address)
{
	struct map_segment segment;
	struct span part;
	uint64_t bytes = 0;
	size_t i = 0;

	mappings->unmaps++;
	while (i < mappings->n_segments && mappings->segments[i].start != address)
		i++;
	if (i == mappings->n_segments)
		return;
	segment = mappings->segments[i];
	mappings->segments[i] = mappings->segments[--mappings->n_segments];
	for (uint64_t at = segment.start; (part = part_of(mappings, &segment, at)).end;)
		bytes += (at = part.end) - part.start;
	torsh_peak_tracker_change(&mappings->tracker, stamp, 0, -(int64_t)bytes);
	for (uint64_t at = segment.start; (part = part_of(mappings, &segment, at)).end;) {
		at = part.end;
		torsh_address_ranges_remove(&mappings->ranges, part.start, part.end, cut_site,
					    mappings);
	}
	mappings->tracker.n = mappings->ranges.n_ranges;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void fold_map(struct mappings *mappings, uint64_t stamp, const struct event_map *map,
		     uint32_t site)
{
	struct span made = span_of(map->address, map->length, map_page_bytes(mappings, map->flags));

	note_kind(mappings, map, site);
	if (map->flags & MAP_OF_SYSTEM_V && made.end)
		add_segment(mappings, made);
	mappings->maps++;
	mappings->sites[site].total_bytes += made.end - made.start;
	replace_span(mappings, stamp, made, made, site);
}

static void fold_unmap(struct mappings *mappings, uint64_t stamp, const struct event_unmap *unmap)
{
	struct span gone = span_of(unmap->address, unmap->length, mappings->page_bytes);

	if (unmap->length == UNMAP_OF_SYSTEM_V) {
		detach(mappings, stamp, unmap->address);
		return;
	}
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

	mappings->sites[site].kinds |= MAPPED_PRIVATE;
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
