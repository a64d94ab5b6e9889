/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The stacks of a process that hold most now, with no more of its tables than they need: a recording of a few pages, which
 * somebody who looks on asks for every second.
 */
#include <stdlib.h>

#include "tools/writer/memory.h"
#include "tools/writer/rows_parts.h"

/* Numbers of rows that are needed: in order and each once after settle_picks. */
struct picks {
	uint32_t *numbers;
	uint32_t n, capacity;
};

struct needed {
	const struct tally *tally;
	struct picks sites, stacks, addresses, modules, functions;
};

static void pick(struct picks *picks, uint32_t number)
{
	picks->numbers = torsh_memory_grow(picks->numbers, &picks->capacity, picks->n, sizeof(*picks->numbers));
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

/* The place of a number that was picked. */
static uint32_t place_of(const struct picks *picks, uint32_t number)
{
	const uint32_t *found = bsearch(&number, picks->numbers, picks->n, sizeof(*picks->numbers), compare_numbers);

	return (uint32_t)(found - picks->numbers);
}

static uint64_t bytes_of(const struct heap *heap, uint32_t site)
{
	return heap->sites[site].live.bytes;
}

/* The picks are a binary heap with the smallest site first: it may have become too large for its place. */
static void sink(struct picks *sites, const struct heap *heap)
{
	uint32_t moved = sites->numbers[0], i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= sites->n)
			break;
		if (child + 1 < sites->n &&
		    bytes_of(heap, sites->numbers[child + 1]) < bytes_of(heap, sites->numbers[child]))
			child++;
		if (bytes_of(heap, sites->numbers[child]) >= bytes_of(heap, moved))
			break;
		sites->numbers[i] = sites->numbers[child];
		i = child;
	}
	sites->numbers[i] = moved;
}

static void rise(struct picks *sites, const struct heap *heap)
{
	uint32_t i = sites->n - 1, moved = sites->numbers[i];

	while (i && bytes_of(heap, sites->numbers[(i - 1) / 2]) > bytes_of(heap, moved)) {
		sites->numbers[i] = sites->numbers[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	sites->numbers[i] = moved;
}

static void pick_sites(struct picks *sites, const struct heap *heap, uint32_t n_most)
{
	for (uint32_t site = 0; n_most && site < heap->n_sites; site++) {
		if (!heap->sites[site].live.n)
			continue;
		if (sites->n < n_most) {
			pick(sites, site);
			rise(sites, heap);
		} else if (bytes_of(heap, site) > bytes_of(heap, sites->numbers[0])) {
			sites->numbers[0] = site;
			sink(sites, heap);
		}
	}
	settle_picks(sites);
}

static void pick_rest(struct needed *needed)
{
	const struct tally *tally = needed->tally;

	for (uint32_t i = 0; i < needed->sites.n; i++) {
		uint32_t stack = tally->heap.sites[needed->sites.numbers[i]].stack;

		for (; stack; stack = tally->stacks.rows[stack].parent)
			pick(&needed->stacks, stack);
	}
	settle_picks(&needed->stacks);
	for (uint32_t i = 0; i < needed->stacks.n; i++)
		pick(&needed->addresses, tally->stacks.rows[needed->stacks.numbers[i]].address);
	settle_picks(&needed->addresses);
	for (uint32_t i = 0; i < needed->addresses.n; i++) {
		const struct view_address *address = &tally->code.addresses[needed->addresses.numbers[i]];

		if (address->module != CHANNEL_NO_MODULE)
			pick(address->flags == ADDRESS_PYTHON ? &needed->functions : &needed->modules, address->module);
	}
	settle_picks(&needed->modules);
	settle_picks(&needed->functions);
}

static void put_modules(Torsh__Modules *row, struct rows_memory *memory, const struct needed *needed)
{
	uint32_t n = needed->modules.n;

	ROWS_SET(row, first, 0);
	ROWS_COLUMN(memory, row, bias, n);
	ROWS_COLUMN(memory, row, start, n);
	ROWS_COLUMN(memory, row, end, n);
	ROWS_COLUMN(memory, row, path, n);
	ROWS_COLUMN(memory, row, build_id, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct code_module *module = &needed->tally->code.modules[needed->modules.numbers[i]];

		row->bias[i] = module->bias;
		row->start[i] = module->start;
		row->end[i] = module->end;
		row->path[i] = module->path;
		row->build_id[i].len = module->n_build_id;
		row->build_id[i].data = (uint8_t *)(uintptr_t)module->build_id;
	}
}

static void put_functions(Torsh__Functions *row, struct rows_memory *memory, const struct needed *needed)
{
	uint32_t n = needed->functions.n;

	ROWS_SET(row, first, 0);
	ROWS_COLUMN(memory, row, name, n);
	ROWS_COLUMN(memory, row, file, n);
	ROWS_COLUMN(memory, row, first_line, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct code_function *function = &needed->tally->code.functions[needed->functions.numbers[i]];

		row->name[i] = function->name;
		row->file[i] = function->file;
		row->first_line[i] = function->first_line;
	}
}

static uint32_t module_place(const struct needed *needed, const struct view_address *address)
{
	if (address->module == CHANNEL_NO_MODULE)
		return CHANNEL_NO_MODULE;
	return place_of(address->flags == ADDRESS_PYTHON ? &needed->functions : &needed->modules, address->module);
}

static void put_addresses(Torsh__Addresses *row, struct rows_memory *memory, const struct needed *needed)
{
	uint32_t n = needed->addresses.n;

	ROWS_SET(row, first, 0);
	ROWS_COLUMN(memory, row, ip, n);
	ROWS_COLUMN(memory, row, flags, n);
	ROWS_COLUMN(memory, row, module, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct view_address *address = &needed->tally->code.addresses[needed->addresses.numbers[i]];

		row->ip[i] = address->ip;
		row->flags[i] = address->flags;
		row->module[i] = module_place(needed, address);
	}
}

static uint32_t stack_place(const struct needed *needed, uint32_t stack)
{
	return stack ? place_of(&needed->stacks, stack) + 1 : 0;
}

static void put_stacks(Torsh__Stacks *row, struct rows_memory *memory, const struct needed *needed)
{
	uint32_t n = needed->stacks.n;

	ROWS_SET(row, first, 1);
	ROWS_COLUMN(memory, row, parent, n);
	ROWS_COLUMN(memory, row, address, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct stack_row *stack = &needed->tally->stacks.rows[needed->stacks.numbers[i]];

		row->parent[i] = stack_place(needed, stack->parent);
		row->address[i] = place_of(&needed->addresses, stack->address);
	}
}

static void put_totals(Torsh__StackTotals *row, struct rows_memory *memory, const struct needed *needed)
{
	uint32_t n = needed->sites.n;

	torsh_rows_make_totals(row, memory, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct heap_site *site = &needed->tally->heap.sites[needed->sites.numbers[i]];

		torsh_rows_put_site(row, i, site);
		row->stack[i] = stack_place(needed, site->stack);
	}
}

static void free_needed(struct needed *needed)
{
	free(needed->sites.numbers);
	free(needed->stacks.numbers);
	free(needed->addresses.numbers);
	free(needed->modules.numbers);
	free(needed->functions.numbers);
}

int torsh_rows_holders(struct recording_file *file, struct target *target, uint32_t n_most)
{
	Torsh__Process process = TORSH__PROCESS__INIT, *processes = &process;
	Torsh__Modules modules = TORSH__MODULES__INIT, *modules_row = &modules;
	Torsh__Functions functions = TORSH__FUNCTIONS__INIT, *functions_row = &functions;
	Torsh__Addresses addresses = TORSH__ADDRESSES__INIT, *addresses_row = &addresses;
	Torsh__Stacks stacks = TORSH__STACKS__INIT, *stacks_row = &stacks;
	Torsh__StackTotals totals = TORSH__STACK_TOTALS__INIT, *totals_row = &totals;
	Torsh__Heap heap = TORSH__HEAP__INIT, *heaps = &heap;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct needed needed = {.tally = &target->tally};
	struct rows_memory memory = {0};
	int result;

	torsh_axis_settle(&target->tally.heap.axis);
	pick_sites(&needed.sites, &target->tally.heap, n_most);
	pick_rest(&needed);
	torsh_rows_put_process(&process, &memory, target);
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
	chunk.n_process = chunk.n_modules = chunk.n_functions = chunk.n_addresses = chunk.n_stacks = 1;
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
