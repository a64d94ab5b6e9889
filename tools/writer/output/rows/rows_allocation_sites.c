/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The allocation sites that currently hold most of a process's memory, by attributed frame, with
 * only the table rows that they need: a recording of a few pages, which `torsh top` requests every
 * second.
 */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/output/rows/rows_parts.h"

/* The live blocks of all stacks with one attributed frame. */
struct frame_total {
	uint64_t bytes, n;
};

/* Numbers of the needed rows: sorted and unique after settle_picks. */
struct picks {
	uint32_t *numbers;
	uint32_t n;
	size_t capacity;
};

struct needed {
	const struct process_state *state;
	struct frame_total *frame_totals; /* by address */
	struct frame_total none; /* blocks without a stack */
	struct picks addresses, modules, functions;
};

static void pick(struct picks *picks, uint32_t number)
{
	picks->numbers = torsh_array_reserve(picks->numbers, picks->n, &picks->capacity,
					     sizeof(*picks->numbers));
	picks->numbers[picks->n++] = number;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return (one > other) - (one < other);
}

static void settle_picks(struct picks *picks)
{
	uint32_t n = 0;

	if (picks->n)
		qsort(picks->numbers, picks->n, sizeof(*picks->numbers), compare_numbers);
	for (uint32_t i = 0; i < picks->n; i++) {
		if (!n || picks->numbers[n - 1] != picks->numbers[i])
			picks->numbers[n++] = picks->numbers[i];
	}
	picks->n = n;
}

/* Returns the index of a number that was picked. */
static uint32_t place_of(const struct picks *picks, uint32_t number)
{
	const uint32_t *found = bsearch(&number, picks->numbers, picks->n, sizeof(*picks->numbers),
					compare_numbers);

	return (uint32_t)(found - picks->numbers);
}

/* The picks are a min-heap; the first may be too large for its place and is sifted down. */
static void sink(struct picks *picks, const struct frame_total *frame_totals)
{
	uint32_t moved = picks->numbers[0], i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= picks->n)
			break;
		if (child + 1 < picks->n && frame_totals[picks->numbers[child + 1]].bytes <
						    frame_totals[picks->numbers[child]].bytes)
			child++;
		if (frame_totals[picks->numbers[child]].bytes >= frame_totals[moved].bytes)
			break;
		picks->numbers[i] = picks->numbers[child];
		i = child;
	}
	picks->numbers[i] = moved;
}

static void rise(struct picks *picks, const struct frame_total *frame_totals)
{
	uint32_t i = picks->n - 1, moved = picks->numbers[i];

	while (i && frame_totals[picks->numbers[(i - 1) / 2]].bytes > frame_totals[moved].bytes) {
		picks->numbers[i] = picks->numbers[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	picks->numbers[i] = moved;
}

static void pick_addresses(struct needed *needed, uint32_t n_most)
{
	struct picks *picks = &needed->addresses;

	for (uint32_t i = 0; n_most && i < needed->state->tables->code.n_addresses; i++) {
		if (!needed->frame_totals[i].n)
			continue;
		if (picks->n < n_most) {
			pick(picks, i);
			rise(picks, needed->frame_totals);
		} else if (needed->frame_totals[i].bytes >
			   needed->frame_totals[picks->numbers[0]].bytes) {
			picks->numbers[0] = i;
			sink(picks, needed->frame_totals);
		}
	}
	settle_picks(picks);
}

static void sum_frames(struct needed *needed)
{
	const struct process_state *state = needed->state;
	struct attributed_frames *attributed = &state->tables->attributed;

	torsh_attributed_frames_update(attributed, &state->tables->code, &state->tables->stacks);
	needed->frame_totals =
		torsh_memory_new(state->tables->code.n_addresses, sizeof(*needed->frame_totals));
	for (uint32_t i = 0; i < state->heap.n_sites; i++) {
		struct site_totals totals = torsh_heap_totals(&state->heap, i);
		struct attributed_frame frame = torsh_attributed_frames_of(
			attributed, &state->tables->stacks, state->heap.sites[i].stack);
		struct frame_total *frame_total =
			frame.rank ? &needed->frame_totals[frame.address] : &needed->none;

		frame_total->bytes += totals.live.bytes;
		frame_total->n += totals.live.n;
	}
}

static void pick_rest(struct needed *needed)
{
	const struct process_state *state = needed->state;

	for (uint32_t i = 0; i < needed->addresses.n; i++) {
		const struct code_address *address =
			&state->tables->code.addresses[needed->addresses.numbers[i]];

		if (address->module != CHANNEL_NO_MODULE)
			pick(address->flags == ADDRESS_PYTHON ? &needed->functions
							      : &needed->modules,
			     address->module);
	}
	settle_picks(&needed->modules);
	settle_picks(&needed->functions);
}

static void put_modules(Torsh__Modules *row, struct rows_memory *memory,
			const struct needed *needed)
{
	torsh_rows_make_modules(row, memory, 0, needed->modules.n);
	for (uint32_t i = 0; i < needed->modules.n; i++)
		torsh_rows_set_module(
			row, i, &needed->state->tables->code.modules[needed->modules.numbers[i]]);
}

static void put_functions(Torsh__Functions *row, struct rows_memory *memory,
			  const struct needed *needed)
{
	torsh_rows_make_functions(row, memory, 0, needed->functions.n);
	for (uint32_t i = 0; i < needed->functions.n; i++)
		torsh_rows_set_function(
			row, i,
			&needed->state->tables->code.functions[needed->functions.numbers[i]]);
}

static uint32_t module_place(const struct needed *needed, const struct code_address *address)
{
	if (address->module == CHANNEL_NO_MODULE)
		return CHANNEL_NO_MODULE;
	return place_of(address->flags == ADDRESS_PYTHON ? &needed->functions : &needed->modules,
			address->module);
}

static void put_addresses(Torsh__Addresses *row, struct rows_memory *memory,
			  const struct needed *needed)
{
	uint32_t n = needed->addresses.n;

	ROWS_SET(row, first, 0);
	ROWS_COLUMN(memory, row, ip, n);
	ROWS_COLUMN(memory, row, flags, n);
	ROWS_COLUMN(memory, row, module, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct code_address *address =
			&needed->state->tables->code.addresses[needed->addresses.numbers[i]];

		row->ip[i] = address->ip;
		row->flags[i] = address->flags;
		row->module[i] = module_place(needed, address);
	}
}

/* Stacks of one frame, one per address, in the same order. */
static void put_stacks(Torsh__Stacks *row, struct rows_memory *memory, const struct needed *needed)
{
	uint32_t n = needed->addresses.n;

	ROWS_SET(row, first, 1);
	ROWS_COLUMN(memory, row, parent, n);
	ROWS_COLUMN(memory, row, address, n);
	for (uint32_t i = 0; i < n; i++)
		row->address[i] = i;
}

static void put_totals(Torsh__StackTotals *row, struct rows_memory *memory,
		       const struct needed *needed)
{
	uint32_t n = needed->addresses.n;

	torsh_rows_make_totals(row, memory, n + 1);
	row->base_blocks[0] = needed->none.n;
	row->base_bytes[0] = needed->none.bytes;
	for (uint32_t i = 0; i < n; i++) {
		const struct frame_total *frame_total =
			&needed->frame_totals[needed->addresses.numbers[i]];

		row->stack[i + 1] = i + 1;
		row->base_blocks[i + 1] = frame_total->n;
		row->base_bytes[i + 1] = frame_total->bytes;
	}
}

static void free_needed(struct needed *needed)
{
	free(needed->frame_totals);
	free(needed->addresses.numbers);
	free(needed->modules.numbers);
	free(needed->functions.numbers);
}

int torsh_rows_allocation_sites(struct recording_file *file, struct target *target, uint32_t n_most)
{
	Torsh__Process process = TORSH__PROCESS__INIT, *processes = &process;
	Torsh__Modules modules = TORSH__MODULES__INIT, *modules_row = &modules;
	Torsh__Functions functions = TORSH__FUNCTIONS__INIT, *functions_row = &functions;
	Torsh__Addresses addresses = TORSH__ADDRESSES__INIT, *addresses_row = &addresses;
	Torsh__Stacks stacks = TORSH__STACKS__INIT, *stacks_row = &stacks;
	Torsh__StackTotals totals = TORSH__STACK_TOTALS__INIT, *totals_row = &totals;
	Torsh__Heap heap = TORSH__HEAP__INIT, *heaps = &heap;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct needed needed = {.state = &target->state};
	struct rows_memory memory = {0};
	int result;

	torsh_peak_tracker_settle(&target->state.heap.tracker);
	if (n_most)
		sum_frames(&needed);
	pick_addresses(&needed, n_most);
	pick_rest(&needed);
	torsh_rows_put_process(&process, &memory, target);
	process.has_tables_of = 0; /* the tables below are its own */
	torsh_rows_put_heap(&heap, &memory, target);
	put_modules(&modules, &memory, &needed);
	put_functions(&functions, &memory, &needed);
	put_addresses(&addresses, &memory, &needed);
	put_stacks(&stacks, &memory, &needed);
	put_totals(&totals, &memory, &needed);
	ROWS_SET(&modules, process, target->number);
	ROWS_SET(&functions, process, target->number);
	ROWS_SET(&addresses, process, target->number);
	ROWS_SET(&stacks, process, target->number);
	ROWS_SET(&totals, process, target->number);
	chunk.n_process = chunk.n_modules = chunk.n_functions = chunk.n_addresses = chunk.n_stacks =
		1;
	chunk.n_stack_totals = chunk.n_heap = 1;
	chunk.process = &processes;
	chunk.modules = &modules_row;
	chunk.functions = &functions_row;
	chunk.addresses = &addresses_row;
	chunk.stacks = &stacks_row;
	chunk.stack_totals = &totals_row;
	chunk.heap = &heaps;
	result = torsh_recording_append(file, &chunk, RECORDING_LAST);
	torsh_rows_free(&memory);
	free_needed(&needed);
	return result;
}
