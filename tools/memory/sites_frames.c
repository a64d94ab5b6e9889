/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The frames of many sites: torsh_sites_find_frames. */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/allocation_sites.h"

struct used {
	struct used_addresses *items; /* one for each process */
	size_t n, n_room;
};

static struct used_addresses *used_of(struct used *used, const struct recorded_process *process)
{
	for (size_t i = used->n; i-- > 0;) {
		if (torsh_recording_has_same_code(used->items[i].process, process))
			return &used->items[i];
	}
	used->items =
		torsh_array_reserve(used->items, used->n, &used->n_room, sizeof(*used->items));
	used->items[used->n] = (struct used_addresses){
		.process = process,
		.is_used = torsh_need_items(NULL, 0, process->tables->n_addresses, sizeof(bool)),
	};
	return &used->items[used->n++];
}

static void use_stack(struct used *used, const struct allocation_site *site, size_t depth)
{
	const struct recorded_process *process = site->process;
	struct used_addresses *of = used_of(used, process);
	uint32_t stack = site->stack;

	for (size_t i = 0; (!depth || i < depth) && stack && stack < process->tables->n_stacks;
	     i++) {
		uint32_t address = process->tables->stacks[stack].address;

		if (address < process->tables->n_addresses)
			of->is_used[address] = true;
		stack = process->tables->stacks[stack].parent;
	}
}

void torsh_sites_find_frames(const struct allocation_sites *sites, struct symbols *symbols,
			     size_t n_first)
{
	struct used used = {0};

	for (size_t i = 0; i < n_first && i < sites->n; i++)
		use_stack(&used, &sites->items[i], sites->depth);
	torsh_symbols_name_used(symbols, used.items, used.n);
	for (size_t i = 0; i < used.n; i++)
		free(used.items[i].is_used);
	free(used.items);
}
