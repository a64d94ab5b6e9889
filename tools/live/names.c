/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/live/names.h"

#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/symbols/symbols.h"

/* An address that has a name. */
struct named {
	const char *name; /* interned */
	uint32_t address;
	uint64_t offset;
};

static int compare_names(const void *a, const void *b)
{
	const struct named *one = a, *other = b;

	if (one->name != other->name)
		return (uintptr_t)one->name < (uintptr_t)other->name ? -1 : 1;
	return one->address < other->address ? -1 : one->address > other->address;
}

static size_t find_names(struct named *named, const struct recorded_process *process,
			 struct symbols *symbols)
{
	size_t n = 0;

	for (size_t i = 0; i < process->tables->n_addresses; i++) {
		const struct frame *frame;

		if (!torsh_recording_module(process, (uint32_t)i) ||
		    torsh_recording_symbol(process, (uint32_t)i))
			continue;
		frame = torsh_symbols_frames(symbols, process, (uint32_t)i)->frames;
		if (frame->linkage_name && frame->has_offset)
			named[n++] = (struct named){.name = frame->linkage_name,
						    .address = (uint32_t)i,
						    .offset = frame->offset};
	}
	qsort(named, n, sizeof(*named), compare_names);
	return n;
}

static int append_names(struct recording_file *file, uint32_t process, const struct named *named,
			size_t n)
{
	Torsh__Symbols row = TORSH__SYMBOLS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	int result;

	row.has_process = 1;
	row.process = process;
	row.name = torsh_need_items(NULL, 0, n, sizeof(*row.name));
	row.address = torsh_need_items(NULL, 0, n, sizeof(*row.address));
	row.symbol = torsh_need_items(NULL, 0, n, sizeof(*row.symbol));
	row.offset = torsh_need_items(NULL, 0, n, sizeof(*row.offset));
	row.n_address = row.n_symbol = row.n_offset = n;
	for (size_t i = 0; i < n; i++) {
		if (!i || named[i - 1].name != named[i].name)
			row.name[row.n_name++] = (char *)(uintptr_t)named[i].name;
		row.address[i] = named[i].address;
		row.symbol[i] = (uint32_t)row.n_name - 1;
		row.offset[i] = named[i].offset;
	}
	chunk.n_symbols = 1;
	chunk.symbols = &rows;
	result = torsh_recording_append(file, &chunk, RECORDING_LAST);
	free(row.name);
	free(row.address);
	free(row.symbol);
	free(row.offset);
	return result;
}

int torsh_live_append_names(struct recording_file *file, const struct recording *recording)
{
	struct symbols *symbols = torsh_symbols_create(false);
	int result = 0;

	for (size_t i = 0; i < recording->n_processes && !result; i++) {
		const struct recorded_process *process = recording->processes[i];
		struct named *named;
		size_t n;

		if (process->end != TORSH__PROCESS__END_KIND__RUNNING)
			continue;
		named = torsh_need_items(NULL, 0, process->tables->n_addresses, sizeof(*named));
		n = find_names(named, process, symbols);
		if (n)
			result = append_names(file, process->number, named, n);
		free(named);
	}
	torsh_symbols_destroy(symbols);
	return result;
}
