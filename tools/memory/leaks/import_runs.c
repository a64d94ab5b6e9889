/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/import_runs.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/frames/stack_path.h"

/*
 * An extension module that is initialised once may leave several blocks of one stack, allocated in
 * a loop: in popular packages the lower quartile of these counts is at most 6.
 */
#define REPEATED_NATIVE 128

#define FEW_STACKS 10
#define FEW_BODIES 4

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

uint32_t torsh_innermost_line(const struct recorded_process *process, uint32_t stack)
{
	if (!process->tables->has_python || stack >= process->tables->n_stacks)
		return 0;
	while (stack && !torsh_is_python_line(process, stack))
		stack = process->tables->stacks[stack].parent;
	return stack;
}

size_t torsh_call_rank(size_t n)
{
	return n < FEW_STACKS ? n / 2 : n / 10;
}

static enum frame_kind kind_of(struct address_kinds *kinds, uint32_t stack)
{
	return torsh_address_kind(kinds, kinds->process->tables->stacks[stack].address);
}

/* What the function of an address is called, as far as it matters. */
enum line_name {
	NAME_IS_KNOWN = 1,
	NAME_READS = 2, /* "get_data" */
	NAME_CALLS = 4,
	NAME_BODY = 8,
	NAME_EXECUTES = 16,
};

static uint8_t make_name(const struct recorded_process *process, uint32_t address)
{
	const struct recorded_function *function = torsh_recording_function(process, address);
	const char *name = function ? function->name : NULL;

	if (!name)
		return NAME_IS_KNOWN;
	return (uint8_t)(NAME_IS_KNOWN | (ends_with(name, "get_data") ? NAME_READS : 0) |
			 (ends_with(name, "_call_with_frames_removed") ? NAME_CALLS : 0) |
			 (ends_with(name, "<module>") ? NAME_BODY : 0) |
			 (ends_with(name, "exec_module") ? NAME_EXECUTES : 0));
}

/* A process, with the names of its addresses that were looked up. */
struct lines {
	struct address_kinds *kinds;
	uint8_t *names; /* enum line_name by address; 0: not looked up */
};

static bool has_name(const struct lines *lines, uint32_t line, enum line_name name)
{
	const struct recorded_process *process = lines->kinds->process;
	uint32_t address = process->tables->stacks[line].address;

	if (!lines->names[address])
		lines->names[address] = make_name(process, address);
	return lines->names[address] & name;
}

/*
 * Returns what the Python line does for an import, as the innermost line of a stack. caller: the
 * line outside of it, 0: none.
 */
static enum import_part part_of(const struct lines *lines, uint32_t line, uint32_t caller)
{
	bool is_import = kind_of(lines->kinds, line) == FRAME_IMPORT;

	if (is_import && has_name(lines, line, NAME_READS))
		return PART_READ;
	if (!has_name(lines, line, is_import ? NAME_CALLS : NAME_BODY))
		return PART_NONE;
	if (!caller || kind_of(lines->kinds, caller) != FRAME_IMPORT)
		return PART_NONE;
	if (!is_import)
		return PART_BODY;
	return has_name(lines, caller, NAME_EXECUTES) ? PART_NATIVE : PART_NONE;
}

/* What is known of a stack by its depth. */
struct caller {
	uint32_t line, import; /* the innermost line of Python, and import; 0: none */
	enum import_part part; /* of the line */
};

/* The caller one frame further in. */
static struct caller next_caller(const struct lines *lines, struct caller caller, uint32_t stack)
{
	const struct recorded_process *process = lines->kinds->process;
	uint32_t address = process->tables->stacks[stack].address;

	if (!torsh_is_python_line(process, stack))
		return caller;
	return (struct caller){
		.line = stack,
		.import = torsh_address_is_import(lines->kinds, address) ? stack : caller.import,
		.part = part_of(lines, stack, caller.line),
	};
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
			 const struct allocation_count *count)
{
	const struct recorded_live *live;

	if (part != PART_NATIVE)
		return count->allocs;
	live = torsh_recording_row(&process->live, count->stack, sizeof(*live));
	return live ? live->blocks : 0;
}

/* Returns a sorted list; the caller frees it. */
static struct import_count *count_imports(struct address_kinds *kinds, size_t *n)
{
	const struct recorded_process *process = kinds->process;
	struct lines lines = {
		.kinds = kinds,
		.names = torsh_need_items(NULL, 0, process->tables->n_addresses, 1),
	};
	struct caller *callers = torsh_need_items(NULL, 0, STACK_PATH_ROOM, sizeof(*callers));
	struct import_count *counts = NULL;
	struct stack_path path;
	size_t room = 0;

	*n = 0;
	torsh_stack_path_start(&path, process);
	for (size_t i = 0; i < process->totals.n; i++) {
		struct allocation_count count = torsh_totals_count(&process->totals, i);
		const struct caller *caller;
		uint64_t times;

		for (size_t k = torsh_stack_path_take(&path, count.stack); k <= path.depth; k++)
			callers[k] = next_caller(&lines, callers[k - 1], path.stacks[k]);
		caller = &callers[path.depth];
		times = caller->part ? times_of(process, caller->part, &count) : 0;
		if (!times || !caller->import)
			continue;
		counts = torsh_array_reserve(counts, *n, &room, sizeof(*counts));
		counts[(*n)++] = (struct import_count){caller->import, caller->part, times};
	}
	torsh_stack_path_end(&path);
	free(callers);
	free(lines.names);
	if (*n)
		qsort(counts, *n, sizeof(*counts), compare_counts);
	return counts;
}

/*
 * Returns true if an import ran more than once. Some lines of a body run only the first time, or
 * several times in a loop: the lower quartile of their counts is the number of runs, provided that
 * as many files were read. The last read may be of another line: before it the source is bytecode.
 * A line that imports several modules of a package reads a file for each: a few counts that are far
 * below the number of files are of a loop in one of these.
 */
static bool is_repeated(const struct import_count *counts, size_t n)
{
	uint64_t reads = 0, bodies = 0, natives = 0;
	size_t n_bodies = 0;

	for (size_t first = 0, end; first < n; first = end) {
		uint64_t quartile;

		for (end = first; end < n && counts[end].part == counts[first].part;)
			end++;
		quartile = counts[first + (end - first) / 4].times;
		n_bodies += counts[first].part == PART_BODY ? end - first : 0;
		if (counts[first].part == PART_READ)
			reads = counts[end - 1].times;
		else if (counts[first].part == PART_BODY)
			bodies = quartile;
		else
			natives = quartile;
	}
	if (n_bodies < FEW_BODIES && bodies < reads / 2)
		bodies = 0;
	return (reads > 1 && bodies > 1 && bodies <= reads + 1) || natives >= REPEATED_NATIVE;
}

void torsh_import_runs_find(struct import_runs *runs, struct address_kinds *kinds)
{
	struct import_count *counts;
	size_t n;

	runs->process = kinds->process;
	runs->is_repeated = torsh_need_items(NULL, 0, runs->process->tables->n_stacks,
					     sizeof(*runs->is_repeated));
	counts = count_imports(kinds, &n);
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
	*runs = (struct import_runs){0};
}
