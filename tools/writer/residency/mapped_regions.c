/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/mapped_regions.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/writer/input/target.h"
#include "tools/writer/reachability/allocator_maps.h"
#include "tools/writer/residency/source_blocks.h"

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool begins_with(const char *text, const char *begin)
{
	return !strncmp(text, begin, strlen(begin));
}

/* What reports call an allocator. */
static const char *allocator_name(const char *path)
{
	static const char *const known[] = {"jemalloc", "tcmalloc", "mimalloc"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strstr(name_of(path), known[i]))
			return known[i];
	}
	return name_of(path);
}

static bool is_driver(const char *path)
{
	return begins_with(name_of(path), "libcuda.so") ||
	       begins_with(name_of(path), "libnvidia-") || begins_with(name_of(path), "libhsa-");
}

static struct owner owner_of(struct account *account, const struct target *target,
			     const char *allocator, const struct address_range *range)
{
	const char *path = torsh_mapper_of(target, range->start);
	struct owner owner = {.kind = OWNER_MAPPED,
			      .stack = target->state.mappings.sites[range->owner].stack};

	if (!path)
		return owner;
	if (*path && begins_with(allocator, path) && !torsh_is_of_glibc(allocator))
		return (struct owner){.kind = OWNER_RETAINED,
				      .name = torsh_account_name(account, allocator_name(path))};
	if (is_driver(path)) {
		owner.kind = OWNER_DEVICE;
		owner.name = torsh_account_name(account, path);
	}
	return owner;
}

static void add(struct mapped_regions *mapped, const struct region *region)
{
	mapped->items = torsh_array_reserve(mapped->items, mapped->n, &mapped->capacity,
					    sizeof(*mapped->items));
	mapped->items[mapped->n++] = *region;
}

/* Add what no mapping of the process itself, the first n_own ones, covers any more. */
static void add_rest(struct mapped_regions *mapped, struct region region, uint32_t n_own)
{
	for (uint32_t i = 0; i < n_own && region.begin < region.end; i++) {
		struct region own = mapped->items[i], part = region;

		if (own.end <= region.begin)
			continue;
		if (own.begin >= region.end)
			break;
		part.end = own.begin;
		if (part.begin < part.end)
			add(mapped, &part);
		region.begin = own.end;
	}
	if (region.begin < region.end)
		add(mapped, &region);
}

static void collect(struct mapped_regions *mapped, struct account *account,
		    const struct target *target)
{
	const struct mappings *mappings = &target->state.mappings;
	const struct address_range *range;
	uint32_t n_own = mapped->n;
	uint64_t at = 0;
	size_t n;
	char *allocator = torsh_view_text(&target->view, target->start.allocator, -1, &n);

	while ((range = torsh_address_ranges_above(&mappings->ranges, at))) {
		struct region region = {
			.begin = range->start,
			.end = range->end,
			.rest = owner_of(account, target, allocator, range),
		};

		at = range->end;
		add_rest(mapped, region, n_own);
	}
	free(allocator);
}

static int compare_regions(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static void sort(struct mapped_regions *mapped)
{
	if (mapped->n)
		qsort(mapped->items, mapped->n, sizeof(*mapped->items), compare_regions);
}

void torsh_mapped_regions_collect(struct mapped_regions *mapped, struct account *account,
				  const struct account_source *source)
{
	collect(mapped, account, source->target);
	for (uint32_t i = 0; i < source->n_ancestors; i++) {
		sort(mapped);
		collect(mapped, account, source->ancestors[i]);
	}
	sort(mapped);
}

void torsh_mapped_regions_free(struct mapped_regions *mapped)
{
	free(mapped->items);
	*mapped = (struct mapped_regions){0};
}

/* The first one that ends behind the address, or NULL. */
static const struct region *find(const struct mapped_regions *mapped, uint64_t address)
{
	uint32_t from = 0, to = mapped->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (mapped->items[middle].end <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from < mapped->n ? &mapped->items[from] : NULL;
}

struct region torsh_mapped_regions_at(const struct mapped_regions *mapped,
				      const struct region *area, uint64_t address)
{
	const struct region *found = find(mapped, address);
	struct region region = *area;

	if (found && found->begin <= address)
		region = *found;
	else if (found && found->begin < region.end)
		region.end = found->begin;
	region.end = region.end < area->end ? region.end : area->end;
	return region;
}

uint32_t torsh_mapped_regions_stack(const struct mapped_regions *mapped, uint64_t address)
{
	const struct region *found = find(mapped, address);

	return found && found->begin <= address ? found->rest.stack : 0;
}
