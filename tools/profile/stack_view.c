/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/stack_view.h. */
#include "tools/profile/stack_view.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/die.h"

#define NOT_ASKED 0 /* in shown; else a stack + 1 */

/* A stack that was added: found again by what it is made of. */
struct made_stack {
	uint32_t parent, address, number;
};

struct stack_views {
	uint32_t *shown; /* by recorded stack: the one that is shown, + 1 */
	size_t n_recorded;
	bool *is_interpreter; /* by module */
	bool *is_evaluation; /* by address: the interpreter's evaluation function */
	void *made; /* tree of struct made_stack */
	uint32_t *addresses; /* of one stack, outermost last */
	size_t addresses_room;
};

static bool is_python(const struct profile_process *process, uint32_t address)
{
	return address < process->n_addresses && process->addresses[address].flags == ADDRESS_PYTHON;
}

static bool is_native(const struct profile_process *process, uint32_t address)
{
	return address < process->n_addresses && process->addresses[address].flags < ADDRESS_PYTHON;
}

/* 3.14 can be built so that each instruction is a function that the evaluation function jumps to. */
static bool is_evaluation_name(const char *name)
{
	return name && (strncmp(name, "_PyEval_EvalFrameDefault", 24) == 0 || strncmp(name, "_TAIL_CALL_", 11) == 0);
}

/* Only what stands directly inside of a line of Python can be the evaluation function: few names are asked for. */
static void find_interpreter(struct stack_views *views, const struct profile_process *process, struct symbols *symbols)
{
	bool *is_asked = torsh_need_items(NULL, 0, process->n_addresses, sizeof(*is_asked));

	for (size_t i = 1; i < process->n_stacks; i++) {
		const struct profile_stack *stack = &process->stacks[i];
		uint32_t address = stack->address;

		if (!is_native(process, address) || is_asked[address] || !stack->parent ||
		    !is_python(process, process->stacks[stack->parent].address))
			continue;
		is_asked[address] = true;
		if (!is_evaluation_name(torsh_symbols_name(symbols, process, address)))
			continue;
		views->is_evaluation[address] = true;
		if (torsh_profile_module(process, address))
			views->is_interpreter[process->addresses[address].module] = true;
	}
	free(is_asked);
}

static struct stack_views *views_of(struct profile_process *process, struct symbols *symbols)
{
	struct stack_views *views = process->views;

	if (views)
		return views;
	views = process->views = torsh_need(calloc(1, sizeof(*views)));
	views->n_recorded = process->n_stacks;
	views->shown = torsh_need_items(NULL, 0, process->n_stacks, sizeof(*views->shown));
	views->is_interpreter = torsh_need_items(NULL, 0, process->n_modules, sizeof(*views->is_interpreter));
	views->is_evaluation = torsh_need_items(NULL, 0, process->n_addresses, sizeof(*views->is_evaluation));
	find_interpreter(views, process, symbols);
	return views;
}

static int compare_made(const void *a, const void *b)
{
	const struct made_stack *one = a, *other = b;

	if (one->parent != other->parent)
		return one->parent < other->parent ? -1 : 1;
	return one->address < other->address ? -1 : one->address > other->address;
}

/* The stack that parent becomes by a call into address. */
static uint32_t push(struct profile_process *process, uint32_t parent, uint32_t address)
{
	struct made_stack key = {.parent = parent, .address = address}, *made, **found;

	found = tfind(&key, &process->views->made, compare_made);
	if (found)
		return (*found)->number;
	made = torsh_need(malloc(sizeof(*made)));
	*made = key;
	made->number = (uint32_t)process->n_stacks;
	process->stacks =
		torsh_need_room(process->stacks, process->n_stacks, &process->stacks_room, sizeof(*process->stacks));
	process->stacks[process->n_stacks++] = (struct profile_stack){.parent = parent, .address = address};
	torsh_need(tsearch(made, &process->views->made, compare_made));
	return made->number;
}

static bool is_shown(const struct profile_process *process, uint32_t address, bool is_inside, enum stack_view view)
{
	const struct stack_views *views = process->views;
	bool is_native_code = is_native(process, address);

	switch (view) {
	case STACK_VIEW_PYTHON:
		return is_python(process, address) ||
		       (address < process->n_addresses && process->addresses[address].flags == ADDRESS_CUT_TOO_DEEP);
	case STACK_VIEW_NATIVE:
		return !is_python(process, address);
	case STACK_VIEW_MERGED:
		if (!is_native_code)
			return true;
		if (views->is_evaluation[address])
			return false;
		return is_inside || !torsh_profile_module(process, address) ||
		       !views->is_interpreter[process->addresses[address].module];
	}
	return true;
}

static uint32_t make_shown(struct profile_process *process, uint32_t stack, enum stack_view view)
{
	struct stack_views *views = process->views;
	bool is_inside = true; /* of the innermost line of Python */
	uint32_t shown = 0;
	size_t n = 0;

	for (; stack && stack < views->n_recorded; stack = process->stacks[stack].parent) {
		uint32_t address = process->stacks[stack].address;

		is_inside = is_inside && !is_python(process, address);
		if (!is_shown(process, address, is_inside, view))
			continue;
		views->addresses =
			torsh_need_room(views->addresses, n, &views->addresses_room, sizeof(*views->addresses));
		views->addresses[n++] = address;
	}
	while (n-- > 0)
		shown = push(process, shown, views->addresses[n]);
	return shown;
}

uint32_t torsh_stack_view(struct profile_process *process, uint32_t stack, struct symbols *symbols,
			  enum stack_view view)
{
	struct stack_views *views;

	if (!process->has_python && view != STACK_VIEW_PYTHON)
		return stack;
	views = views_of(process, symbols);
	if (stack >= views->n_recorded)
		return stack;
	if (views->shown[stack] == NOT_ASKED)
		views->shown[stack] = make_shown(process, stack, view) + 1;
	return views->shown[stack] - 1;
}

const struct frame **torsh_stack_frames(const struct profile_process *process, uint32_t stack, struct symbols *symbols,
					enum stack_view view, size_t *n)
{
	const struct frame **frames = NULL;
	size_t n_room = 0;

	*n = 0;
	if (!stack || stack >= process->n_stacks)
		return NULL;
	/* Views add to the process's stacks; what it is stays the same. */
	stack = torsh_stack_view((struct profile_process *)process, stack, symbols, view);
	while (stack && stack < process->n_stacks) {
		const struct profile_stack *node = &process->stacks[stack];
		const struct frames *at = torsh_symbols_frames(symbols, process, node->address);

		for (size_t i = 0; i < at->n; i++) {
			frames = torsh_need_room(frames, *n, &n_room, sizeof(*frames));
			frames[(*n)++] = &at->frames[i];
		}
		stack = node->parent;
	}
	return frames;
}

void torsh_stack_view_free(struct profile_process *process)
{
	struct stack_views *views = process->views;

	if (!views)
		return;
	while (views->made) {
		struct made_stack *root = *(struct made_stack **)views->made;

		tdelete(root, &views->made, compare_made);
		free(root);
	}
	free(views->shown);
	free(views->is_interpreter);
	free(views->is_evaluation);
	free(views->addresses);
	free(views);
	process->views = NULL;
}
