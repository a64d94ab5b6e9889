/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/die.h"
#include "tools/base/memory.h"
#include "tools/symbols/symbols.h"

/* An address of a stack. */
struct place {
	uint32_t file, process, address;
};

struct places {
	const struct used_addresses *used;
	struct place *items;
	size_t n, n_room;
	struct hash_map files; /* by path */
};

/* What of a process is in stacks that allocated or mapped. */
struct used {
	const struct recorded_process *process;
	bool *addresses, *stacks;
};

static void use_stack(const struct used *used, uint32_t stack)
{
	const struct recorded_process *process = used->process;

	for (; stack && stack < process->tables->n_stacks && !used->stacks[stack];
	     stack = process->tables->stacks[stack].parent) {
		uint32_t address = process->tables->stacks[stack].address;

		used->stacks[stack] = true;
		if (address < process->tables->n_addresses)
			used->addresses[address] = true;
	}
}

/* Returns by address whether it is used; the caller frees the array. */
static bool *find_used(const struct recorded_process *process)
{
	const struct recorded_mapping *mappings = process->mappings.items;
	struct used used = {
		.process = process,
		.addresses = torsh_need_items(NULL, 0, process->tables->n_addresses, sizeof(bool)),
		.stacks = torsh_need_items(NULL, 0, process->tables->n_stacks, sizeof(bool)),
	};

	for (size_t i = 0; i < process->totals.n; i++)
		use_stack(&used, torsh_totals_count(&process->totals, i).stack);
	for (size_t i = 0; i < process->mappings.n; i++)
		use_stack(&used, mappings[i].stack);
	free(used.stacks);
	return used.addresses;
}

/* Add the used addresses of a process that are in files. */
static void add_places(struct places *places, size_t number)
{
	const struct recorded_process *process = places->used[number].process;
	const bool *is_used = places->used[number].is_used;

	for (uint32_t i = 0; i < process->tables->n_addresses; i++) {
		const struct recorded_module *module =
			is_used[i] ? torsh_recording_module(process, i) : NULL;

		if (!module)
			continue;
		places->items = torsh_array_reserve(places->items, places->n, &places->n_room,
						    sizeof(*places->items));
		places->items[places->n++] = (struct place){
			.file = (uint32_t)torsh_hash_map_put_text(&places->files, module->path,
								  places->files.n)
					->value,
			.process = (uint32_t)number,
			.address = i,
		};
	}
}

static uint64_t offset_of(const struct places *places, const struct place *place)
{
	const struct recorded_process *process = places->used[place->process].process;

	return process->tables->addresses[place->address].ip -
	       torsh_recording_module(process, place->address)->bias;
}

/* In the order of a file's code what is read for one address serves the next. */
static int compare_places(const void *a, const void *b, void *places)
{
	const struct place *one = a, *other = b;
	uint64_t x, y;

	if (one->file != other->file)
		return one->file < other->file ? -1 : 1;
	x = offset_of(places, one);
	y = offset_of(places, other);
	return (x > y) - (x < y);
}

void torsh_symbols_name_used(struct symbols *symbols, const struct used_addresses *used, size_t n)
{
	struct places places = {.used = used};

	for (size_t i = 0; i < n; i++)
		add_places(&places, i);
	if (places.n)
		qsort_r(places.items, places.n, sizeof(*places.items), compare_places, &places);
	for (size_t i = 0; i < places.n; i++) {
		const struct place *place = &places.items[i];

		if (i && place->file != place[-1].file)
			torsh_symbols_close_files(symbols);
		torsh_symbols_frames(symbols, used[place->process].process, place->address);
	}
	torsh_symbols_close_files(symbols);
	torsh_hash_map_free(&places.files);
	free(places.items);
	torsh_memory_trim();
}

void torsh_symbols_name_stacks(struct symbols *symbols, struct recorded_process *const *processes,
			       size_t n_processes)
{
	struct used_addresses *used = torsh_need_items(NULL, 0, n_processes, sizeof(*used));

	for (size_t i = 0; i < n_processes; i++)
		used[i] = (struct used_addresses){.process = processes[i],
						  .is_used = find_used(processes[i])};
	torsh_symbols_name_used(symbols, used, n_processes);
	for (size_t i = 0; i < n_processes; i++)
		free(used[i].is_used);
	free(used);
}
