/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/stack_view.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/array.h"
#include "tools/base/containers/number_index.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"

#define NOT_ASKED 0 /* in shown; other values are a stack + 1 */

struct stack_views {
	struct sparse_array shown; /* uint32_t by recorded stack: the stack to show, + 1 */
	struct sparse_array outer; /* likewise for a stack directly outside of a Python line */
	size_t n_recorded;
	bool *is_interpreter; /* by module */
	bool *is_evaluation; /* by address: is it the interpreter's evaluation function */
	/* stacks added by views, numbered from 1, by parent and address */
	struct number_index made;
	uint32_t *path; /* the addresses of one stack that are still to be added, innermost first */
	size_t path_room;
};

static bool is_python(const struct recorded_process *process, uint32_t address)
{
	return address < process->tables->n_addresses &&
	       process->tables->addresses[address].flags == ADDRESS_PYTHON;
}

static bool is_native(const struct recorded_process *process, uint32_t address)
{
	return address < process->tables->n_addresses &&
	       process->tables->addresses[address].flags < ADDRESS_PYTHON;
}

/*
 * Python 3.14 can be built with tail calls: each instruction is a function that the evaluation
 * function jumps to.
 */
static bool is_evaluation_name(const char *name)
{
	return name && (strncmp(name, "_PyEval_EvalFrameDefault", 24) == 0 ||
			strncmp(name, "_TAIL_CALL_", 11) == 0);
}

/*
 * Only a frame directly inside of a Python line can be the evaluation function: few names are
 * looked up.
 */
static void find_interpreter(struct stack_views *views, const struct recorded_process *process,
			     struct symbols *symbols)
{
	enum { OTHER, PYTHON, TO_ASK };
	uint8_t *kinds = torsh_need_items(NULL, 0, PROFILE_NO_ADDRESS + 1u, 1); /* by address */
	const struct recorded_stack *stacks = process->tables->stacks;

	for (uint32_t i = 0; i < process->tables->n_addresses; i++)
		kinds[i] = is_python(process, i) ? PYTHON : is_native(process, i) ? TO_ASK : OTHER;
	for (size_t i = 1; i < process->tables->n_stacks; i++) {
		uint32_t address = stacks[i].address;

		if (kinds[address] != TO_ASK || !stacks[i].parent ||
		    kinds[stacks[stacks[i].parent].address] != PYTHON)
			continue;
		kinds[address] = OTHER;
		if (!is_evaluation_name(torsh_symbols_name(symbols, process, address)))
			continue;
		views->is_evaluation[address] = true;
		if (torsh_recording_module(process, address))
			views->is_interpreter[process->tables->addresses[address].module] = true;
	}
	free(kinds);
}

static void free_views(struct stack_views *views)
{
	torsh_sparse_array_destroy(&views->shown);
	free(views->is_interpreter);
	free(views->is_evaluation);
	torsh_sparse_array_destroy(&views->outer);
	torsh_number_index_destroy(&views->made);
	free(views->path);
	free(views);
}

void torsh_stack_views_forget(struct recorded_process *process)
{
	if (process->tables->views)
		process->tables->free_views(process->tables->views);
	process->tables->views = NULL;
}

static struct stack_views *views_of(struct recorded_process *process, struct symbols *symbols)
{
	struct stack_views *views = process->tables->views;

	if (views)
		return views;
	views = process->tables->views = torsh_need(calloc(1, sizeof(*views)));
	process->tables->free_views = free_views;
	views->n_recorded = process->tables->n_stacks;
	torsh_number_index_create(&views->made);
	torsh_sparse_array_create(&views->shown, sizeof(uint32_t));
	torsh_sparse_array_create(&views->outer, sizeof(uint32_t));
	views->is_interpreter = torsh_need_items(NULL, 0, process->tables->n_modules,
						 sizeof(*views->is_interpreter));
	views->is_evaluation = torsh_need_items(NULL, 0, process->tables->n_addresses,
						sizeof(*views->is_evaluation));
	find_interpreter(views, process, symbols);
	return views;
}

/* Returns the stack of that call which a view added, or 0. */
static uint32_t find_made(const struct recorded_tables *tables, uint32_t parent, uint32_t address)
{
	const struct stack_views *views = tables->views;
	uint32_t hash = torsh_number_index_hash(parent, address), number,
		 slot = torsh_number_index_home(&views->made, hash);

	while ((number = torsh_number_index_next(&views->made, hash, &slot))) {
		uint32_t stack = (uint32_t)views->n_recorded + number - 1;

		if (tables->stacks[stack].parent == parent &&
		    tables->stacks[stack].address == address)
			return stack;
	}
	return 0;
}

/* Add all stacks that views added to an index with more room. */
static void grow_made(struct recorded_tables *tables)
{
	struct stack_views *views = tables->views;

	torsh_number_index_grow(&views->made);
	for (size_t i = views->n_recorded; i < tables->n_stacks; i++)
		torsh_number_index_add(&views->made, (uint32_t)(i - views->n_recorded + 1),
				       torsh_number_index_hash(tables->stacks[i].parent,
							       tables->stacks[i].address));
}

/* Returns the stack of a call into `address` from `parent`. */
static uint32_t push(struct recorded_process *process, uint32_t parent, uint32_t address)
{
	struct recorded_tables *tables = process->tables;
	struct stack_views *views = tables->views;
	uint32_t number = find_made(tables, parent, address);

	if (number)
		return number;
	if (torsh_number_index_is_full(&views->made))
		grow_made(tables);
	number = (uint32_t)tables->n_stacks;
	tables->stacks = torsh_array_reserve(tables->stacks, tables->n_stacks, &tables->stacks_room,
					     sizeof(*tables->stacks));
	tables->stacks[tables->n_stacks++] = (struct recorded_stack){
		.parent = parent, .address = address, .depth = tables->stacks[parent].depth + 1u};
	torsh_number_index_add(&views->made, (uint32_t)(number - views->n_recorded + 1),
			       torsh_number_index_hash(parent, address));
	return number;
}

/* Returns whether the cut also concerns the Python part of the stack. */
static bool is_cut_for_all(const struct recorded_process *process, uint32_t address)
{
	uint32_t flags = address < process->tables->n_addresses
				 ? process->tables->addresses[address].flags
				 : 0;

	return flags == ADDRESS_CUT_TOO_DEEP || flags == ADDRESS_CUT_NO_MEMORY;
}

static bool is_shown(const struct recorded_process *process, uint32_t address, bool is_inside,
		     enum stack_view view)
{
	const struct stack_views *views = process->tables->views;
	bool is_native_code = is_native(process, address);

	switch (view) {
	case STACK_VIEW_PYTHON:
		return is_python(process, address) || is_cut_for_all(process, address);
	case STACK_VIEW_NATIVE:
		return !is_python(process, address);
	case STACK_VIEW_MERGED:
		if (!is_native_code)
			return true;
		if (views->is_evaluation[address])
			return false;
		return is_inside || !torsh_recording_module(process, address) ||
		       !views->is_interpreter[process->tables->addresses[address].module];
	}
	return true;
}

/* Returns the stack to show + 1, or NOT_ASKED. */
static uint32_t known_view(const struct sparse_array *views, uint32_t stack)
{
	const uint32_t *known = torsh_sparse_array_find(views, stack);

	return known ? *known : NOT_ASKED;
}

static void know_view(struct sparse_array *views, uint32_t stack, uint32_t shown)
{
	uint32_t *known = torsh_sparse_array_at(views, stack);

	*known = shown + 1;
}

static void keep(struct stack_views *views, size_t n, uint32_t stack)
{
	views->path = torsh_array_reserve(views->path, n, &views->path_room, sizeof(*views->path));
	views->path[n] = stack;
}

/*
 * Returns the view of a stack directly outside of a Python line; it is shared by all stacks inside
 * of it. The first n_kept entries of the path stay.
 */
static uint32_t show_outer(struct recorded_process *process, uint32_t stack, size_t n_kept,
			   enum stack_view view)
{
	struct stack_views *views = process->tables->views;
	uint32_t shown = 0;
	size_t n = n_kept;

	for (; stack && stack < views->n_recorded; stack = process->tables->stacks[stack].parent) {
		uint32_t known = known_view(&views->outer, stack);

		if (known != NOT_ASKED) {
			shown = known - 1;
			break;
		}
		keep(views, n++, stack);
	}
	while (n-- > n_kept) {
		uint32_t address = process->tables->stacks[views->path[n]].address;

		if (is_shown(process, address, false, view))
			shown = push(process, shown, address);
		know_view(&views->outer, views->path[n], shown);
	}
	return shown;
}

/*
 * What is shown of a stack. What several stacks share inside of a line of Python is shown once,
 * too.
 */
static uint32_t make_shown(struct recorded_process *process, uint32_t stack, enum stack_view view)
{
	struct stack_views *views = process->tables->views;
	uint32_t outer = stack, shown; /* the innermost Python line, or a stack with a view */
	uint32_t known = NOT_ASKED; /* of outer */
	size_t n = 0;

	while (outer && outer < views->n_recorded &&
	       (known = known_view(&views->shown, outer)) == NOT_ASKED &&
	       !is_python(process, process->tables->stacks[outer].address)) {
		keep(views, n++, outer);
		outer = process->tables->stacks[outer].parent;
	}
	if (known != NOT_ASKED)
		shown = known - 1;
	else
		shown = show_outer(process, outer, n, view);
	while (n-- > 0) {
		uint32_t inner = views->path[n], address = process->tables->stacks[inner].address;

		if (is_shown(process, address, true, view))
			shown = push(process, shown, address);
		know_view(&views->shown, inner, shown);
	}
	return shown;
}

uint32_t torsh_stack_view(struct recorded_process *process, uint32_t stack, struct symbols *symbols,
			  enum stack_view view)
{
	struct stack_views *views;
	uint32_t shown;

	if (!process->tables->has_python && view != STACK_VIEW_PYTHON)
		return stack;
	views = views_of(process, symbols);
	if (stack >= views->n_recorded)
		return stack;
	shown = known_view(&views->shown, stack);
	if (shown != NOT_ASKED)
		return shown - 1;
	shown = make_shown(process, stack, view);
	know_view(&views->shown, stack, shown);
	return shown;
}

bool torsh_stack_view_shows(struct recorded_process *process, uint32_t stack, bool is_inner,
			    struct symbols *symbols, enum stack_view view)
{
	if (!process->tables->has_python && view != STACK_VIEW_PYTHON)
		return true;
	if (stack >= views_of(process, symbols)->n_recorded)
		return true;
	return is_shown(process, process->tables->stacks[stack].address, is_inner, view);
}

const struct frame **torsh_stack_frames(const struct recorded_process *process, uint32_t stack,
					struct symbols *symbols, enum stack_view view, size_t *n)
{
	const struct frame **frames = NULL;
	size_t n_room = 0;

	*n = 0;
	if (!stack || stack >= process->tables->n_stacks)
		return NULL;
	/* Views only add to the process's stacks; the rest of it is const. */
	stack = torsh_stack_view((struct recorded_process *)process, stack, symbols, view);
	while (stack && stack < process->tables->n_stacks) {
		const struct recorded_stack *node = &process->tables->stacks[stack];
		const struct frames *at = torsh_symbols_frames(symbols, process, node->address);

		for (size_t i = 0; i < at->n; i++) {
			frames = torsh_array_reserve(frames, *n, &n_room, sizeof(*frames));
			frames[(*n)++] = &at->frames[i];
		}
		stack = node->parent;
	}
	return frames;
}
