/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/die_ranges.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

void torsh_die_ranges_add(struct die_ranges *ranges, Dwarf_Die *die, uint64_t bias)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		if (start == 0 || end <= start)
			continue;
		ranges->items = torsh_array_reserve(ranges->items, ranges->n, &ranges->room,
						    sizeof(*ranges->items));
		ranges->items[ranges->n++] =
			(struct die_range){.start = start + bias, .end = end + bias, .die = *die};
	}
}

/* Of two ranges with the same start, the one to find sorts last. */
static int compare_ranges(const void *a, const void *b)
{
	const struct die_range *one = a, *other = b;
	Dwarf_Off offset, other_offset;

	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	if (one->end != other->end)
		return one->end > other->end ? -1 : 1;
	offset = dwarf_dieoffset((Dwarf_Die *)&one->die);
	other_offset = dwarf_dieoffset((Dwarf_Die *)&other->die);
	return offset > other_offset ? -1 : offset < other_offset;
}

void torsh_die_ranges_sort(struct die_ranges *ranges)
{
	uint64_t reach = 0;

	if (ranges->n)
		qsort(ranges->items, ranges->n, sizeof(*ranges->items), compare_ranges);
	for (size_t i = 0; i < ranges->n; i++) {
		if (ranges->items[i].end > reach)
			reach = ranges->items[i].end;
		ranges->items[i].reach = reach;
	}
}

const Dwarf_Die *torsh_die_ranges_find(const struct die_ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low > 0 && ranges->items[low - 1].reach > address; low--) {
		if (ranges->items[low - 1].end > address)
			return &ranges->items[low - 1].die;
	}
	return NULL;
}

void torsh_die_ranges_free(struct die_ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct die_ranges){0};
}
