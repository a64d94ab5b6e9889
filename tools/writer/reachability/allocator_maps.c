/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/allocator_maps.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/writer/input/target.h"

static bool begins_with(const char *text, const char *begin)
{
	return *begin && !strncmp(text, begin, strlen(begin));
}

/* The module that called mmap with this stack, or NULL. */
static const struct code_module *caller_of(const struct target *target, uint32_t site)
{
	const struct program_tables *tables = target->state.tables;
	uint32_t stack = target->state.mappings.sites[site].stack;
	const struct code_address *address;

	if (!stack)
		return NULL;
	address = &tables->code.addresses[torsh_stacks_address(&tables->stacks, stack)];
	return address->flags & ADDRESS_PYTHON || address->module >= tables->code.n_modules
		       ? NULL
		       : &tables->code.modules[address->module];
}

const char *torsh_mapper_of(const struct target *target, uint64_t address)
{
	const struct mappings *mappings = &target->state.mappings;
	const struct address_range *range = torsh_address_ranges_above(&mappings->ranges, address);
	const struct code_module *caller =
		range && range->start <= address ? caller_of(target, range->owner) : NULL;

	return caller ? caller->path : NULL;
}

void torsh_allocator_maps_add(struct heap_ranges *ranges, const struct target *target)
{
	const struct mappings *mappings = &target->state.mappings;
	const struct address_range *range;
	uint64_t at = 0;
	size_t n;
	char *allocator = torsh_view_text(&target->view, target->start.allocator, -1, &n);

	while (!strstr(allocator, "/libc.so") && !strstr(allocator, "/libc-") &&
	       (range = torsh_address_ranges_above(&mappings->ranges, at))) {
		const struct code_module *caller = caller_of(target, range->owner);

		if (caller && begins_with(allocator, caller->path))
			torsh_heap_ranges_add(ranges, range->start, range->end);
		at = range->end;
	}
	free(allocator);
	torsh_heap_ranges_sort(ranges);
}

bool torsh_is_python(const char *path)
{
	const char *file = strrchr(path, '/');

	return file && (begins_with(file, "/python") || begins_with(file, "/libpython"));
}

void torsh_python_maps_add(struct heap_ranges *ranges, const struct target *target)
{
	const struct mappings *mappings = &target->state.mappings;
	const struct address_range *range;

	for (uint64_t at = 0; (range = torsh_address_ranges_above(&mappings->ranges, at));
	     at = range->end) {
		const struct code_module *caller = caller_of(target, range->owner);

		if (caller && torsh_is_python(caller->path))
			torsh_heap_ranges_add(ranges, range->start, range->end);
	}
	torsh_heap_ranges_sort(ranges);
}
