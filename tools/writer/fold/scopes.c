/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/scopes.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

/* deeper scopes are only counted: missing ends must not fill the memory */
#define DEPTH_MAX 65536u

/* The open scopes of a thread, outermost first. */
struct nest {
	struct nested {
		uint32_t label, record;
		uint32_t scope; /* of an operator: enum op_scope */
	} * items;
	uint32_t depth, n_deeper;
	size_t capacity;
};

struct scope_stack {
	struct scope scope;
	struct nest operators, modules;
};

static void destroy_stack(struct scope_stack *stack)
{
	if (!stack)
		return;
	free(stack->operators.items);
	free(stack->modules.items);
	free(stack);
}

void torsh_scopes_destroy(struct scopes *scopes)
{
	for (uint32_t i = 0; i < scopes->n; i++)
		destroy_stack(scopes->stacks[i]);
	free(scopes->stacks);
	*scopes = (struct scopes){0};
}

void torsh_scopes_end(struct scopes *scopes, uint32_t slot)
{
	if (slot >= scopes->n)
		return;
	destroy_stack(scopes->stacks[slot]);
	scopes->stacks[slot] = NULL;
}

static void push(struct scopes *scopes, struct nest *nest, struct nested nested)
{
	if (nest->depth == DEPTH_MAX) {
		nest->n_deeper++;
		scopes->n_unkept++;
		return;
	}
	nest->items = torsh_array_reserve(nest->items, nest->depth, &nest->capacity,
					  sizeof(*nest->items));
	nest->items[nest->depth++] = nested;
}

static uint32_t top(const struct nest *nest)
{
	return nest->depth ? nest->items[nest->depth - 1].label : 0;
}

static void pop(struct nest *nest)
{
	if (nest->n_deeper)
		nest->n_deeper--;
	else if (nest->depth)
		nest->depth--;
}

/* Remove a scope at any depth: ends need not be in order. Returns 0 if it is not found. */
static bool take_out(struct nest *nest, uint32_t record)
{
	for (uint32_t i = nest->depth; i-- > 0;) {
		if (nest->items[i].record != record)
			continue;
		nest->depth--;
		memmove(&nest->items[i], &nest->items[i + 1],
			(nest->depth - i) * sizeof(*nest->items));
		return true;
	}
	return false;
}

static void end_operator(struct scopes *scopes, struct scope_stack *own, uint32_t record)
{
	if (take_out(&own->operators, record))
		return;
	if (own->operators.n_deeper) {
		own->operators.n_deeper--;
		return;
	}
	for (uint32_t i = 0; i < scopes->n; i++) {
		struct scope_stack *other = scopes->stacks[i];

		if (!other || !take_out(&other->operators, record))
			continue;
		other->scope.operator= top(&other->operators);
		return;
	}
}

const struct scope *torsh_scopes_take(struct scopes *scopes, uint32_t slot,
				      const struct event *event)
{
	struct scope_stack *own;

	while (scopes->n <= slot) {
		scopes->stacks = torsh_array_reserve(scopes->stacks, scopes->n, &scopes->capacity,
						     sizeof(*scopes->stacks));
		scopes->stacks[scopes->n++] = NULL;
	}
	own = scopes->stacks[slot];
	if (!own)
		own = scopes->stacks[slot] = torsh_memory_new(1, sizeof(*own));
	if (event->id == EVENT_OP_BEGIN)
		push(scopes, &own->operators,
		     (struct nested){.label = event->op_begin.name,
				     .record = event->op_begin.record,
				     .scope = event->op_begin.scope});
	else if (event->id == EVENT_OP_END)
		end_operator(scopes, own, event->op_end.record);
	else if (event->id == EVENT_RANGE_PUSH && event->range_push.source == RANGE_BY_MODULE)
		push(scopes, &own->modules, (struct nested){.label = event->range_push.name});
	else if (event->id == EVENT_RANGE_POP && event->range_pop.source == RANGE_BY_MODULE)
		pop(&own->modules);
	own->scope.operator= top(&own->operators);
	own->scope.module = top(&own->modules);
	return &own->scope;
}

bool torsh_scopes_is_outermost(const struct scopes *scopes, uint32_t slot)
{
	const struct nest *operators =
		slot < scopes->n && scopes->stacks[slot] ? &scopes->stacks[slot]->operators : NULL;

	for (uint32_t i = operators ? operators->depth : 0; i-- > 0;) {
		if (operators->items[i].scope == OP_BACKWARD)
			return true;
		if (operators->items[i].scope != OP_USER)
			return false;
	}
	return !operators || !operators->n_deeper;
}
