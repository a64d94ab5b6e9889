/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/import_runs.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/die.h"

/*
 * An extension module that is initialised once may leave several blocks of one stack, allocated in
 * a loop: in popular packages the lower quartile of these counts is at most 6.
 */
#define REPEATED_NATIVE 128

#define FEW_STACKS 10

enum import_part {
	PART_NONE,
	PART_READ, /* reading a module's file */
	PART_BODY, /* the lines of a Python module itself, without their callees */
	PART_NATIVE, /* execution of an extension module, after its creation */
};

/* What one stack allocated during an import. */
struct import_count {
	uint32_t import; /* the stack of the innermost import */
	enum import_part part;
	uint64_t times; /* allocations; for PART_NATIVE only those that were not freed */
};

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	return n >= n_end && !strcmp(text + n - n_end, end);
}

static uint32_t *find_lines(const struct recorded_process *process)
{
	uint32_t *lines = torsh_need_items(NULL, 0, process->n_stacks, sizeof(*lines));

	/* A caller has a smaller number. */
	for (uint32_t stack = 1; stack < process->n_stacks; stack++) {
		const struct recorded_stack *of = &process->stacks[stack];
		bool is_line = of->address < process->n_addresses &&
			       process->addresses[of->address].flags == ADDRESS_PYTHON;

		lines[stack] = is_line ? stack : lines[of->parent];
	}
	return lines;
}

size_t torsh_call_rank(size_t n)
{
	return n < FEW_STACKS ? n / 2 : n / 10;
}

static enum frame_kind kind_of(struct address_kinds *kinds, uint32_t stack)
{
	return torsh_address_kind(kinds, kinds->process->stacks[stack].address);
}

static bool has_name(const struct recorded_process *process, uint32_t line, const char *end)
{
	const struct recorded_function *function =
		torsh_recording_function(process, process->stacks[line].address);

	return function && function->name && ends_with(function->name, end);
}

/* Returns what the Python line does for an import, as the innermost line of a stack. */
static enum import_part part_of(const struct import_runs *runs, struct address_kinds *kinds,
				uint32_t line)
{
	const struct recorded_process *process = kinds->process;
	bool is_import = kind_of(kinds, line) == FRAME_IMPORT;
	uint32_t caller;

	if (is_import && has_name(process, line, "get_data"))
		return PART_READ;
	if (!has_name(process, line, is_import ? "_call_with_frames_removed" : "<module>"))
		return PART_NONE;
	caller = runs->lines[process->stacks[line].parent];
	if (!caller || kind_of(kinds, caller) != FRAME_IMPORT)
		return PART_NONE;
	if (!is_import)
		return PART_BODY;
	return has_name(process, caller, "exec_module") ? PART_NATIVE : PART_NONE;
}

static uint32_t innermost_import(struct address_kinds *kinds, uint32_t stack)
{
	const struct recorded_stack *stacks = kinds->process->stacks;

	while (stack && !torsh_address_is_import(kinds, stacks[stack].address))
		stack = stacks[stack].parent;
	return stack;
}

static int compare_counts(const void *a, const void *b)
{
	const struct import_count *one = a, *other = b;

	if (one->import != other->import)
		return one->import < other->import ? -1 : 1;
	if (one->part != other->part)
		return one->part < other->part ? -1 : 1;
	return (one->times > other->times) - (one->times < other->times);
}

/* Returns how often a stack allocated, as its part counts it. */
static uint64_t times_of(const struct recorded_process *process, enum import_part part,
			 const struct recorded_total *total)
{
	const struct recorded_live *live;

	if (part != PART_NATIVE)
		return total->allocs;
	live = torsh_recording_row(&process->live, total->stack, sizeof(*live));
	return live ? live->blocks : 0;
}

/* Returns a sorted list; the caller frees it. */
static struct import_count *count_imports(const struct import_runs *runs,
					  struct address_kinds *kinds, size_t *n)
{
	const struct recorded_process *process = kinds->process;
	struct import_count *counts =
		torsh_need_items(NULL, 0, process->totals.n + 1, sizeof(*counts));

	*n = 0;
	for (size_t i = 0; i < process->totals.n; i++) {
		struct recorded_total total = torsh_totals_at(&process->totals, i);
		uint32_t stack = total.stack < process->n_stacks ? total.stack : 0;
		uint32_t line = runs->lines[stack];
		enum import_part part = line ? part_of(runs, kinds, line) : PART_NONE;
		uint64_t times = part ? times_of(process, part, &total) : 0;
		uint32_t import = times ? innermost_import(kinds, line) : 0;

		if (import)
			counts[(*n)++] = (struct import_count){import, part, times};
	}
	qsort(counts, *n, sizeof(*counts), compare_counts);
	return counts;
}

/*
 * Returns true if an import ran more than once. Some lines of a body run only the first time, or
 * several times in a loop: the lower quartile of their counts is the number of runs, provided that
 * as many files were read. The last read may be of another line: before it the source is bytecode.
 */
static bool is_repeated(const struct import_count *counts, size_t n)
{
	uint64_t reads = 0, bodies = 0, natives = 0;

	for (size_t first = 0, end; first < n; first = end) {
		uint64_t quartile;

		for (end = first; end < n && counts[end].part == counts[first].part;)
			end++;
		quartile = counts[first + (end - first) / 4].times;
		if (counts[first].part == PART_READ)
			reads = counts[end - 1].times;
		else if (counts[first].part == PART_BODY)
			bodies = quartile;
		else
			natives = quartile;
	}
	return (reads > 1 && bodies > 1 && bodies <= reads + 1) || natives >= REPEATED_NATIVE;
}

void torsh_import_runs_find(struct import_runs *runs, struct address_kinds *kinds)
{
	struct import_count *counts;
	size_t n;

	runs->process = kinds->process;
	runs->is_repeated =
		torsh_need_items(NULL, 0, runs->process->n_stacks, sizeof(*runs->is_repeated));
	runs->lines = find_lines(runs->process);
	counts = count_imports(runs, kinds, &n);
	for (size_t first = 0, end; first < n; first = end) {
		for (end = first; end < n && counts[end].import == counts[first].import;)
			end++;
		runs->is_repeated[counts[first].import] = is_repeated(counts + first, end - first);
	}
	free(counts);
}

void torsh_import_runs_end(struct import_runs *runs)
{
	free(runs->is_repeated);
	free(runs->lines);
	*runs = (struct import_runs){0};
}
