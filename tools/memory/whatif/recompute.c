/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/recompute.h"

#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/size.h"

#define NEVER UINT32_MAX

/* The changes of a trace that belong to a call, by index. */
struct call_changes {
	size_t first, end, backward;
};

/* A call's end, or the begin of its backward pass. */
struct turn {
	size_t at; /* before this change */
	size_t call;
	bool is_backward;
};

struct recomputing {
	struct memory_trace *trace;
	struct call_changes *calls;
	size_t n_calls;
	struct turn *turns; /* in order */
	size_t n_turns;
	size_t *freed_at; /* by block: index of the change; SIZE_MAX: never */
	bool *is_dropped; /* by block: freed at the end of its call */
	uint32_t *again; /* by block: what replaces it; NEVER: nothing yet */
	size_t n_blocks; /* of the recorded run */
	struct memory_trace made; /* its changes only */
	uint64_t dropped_blocks, dropped_bytes;
};

static size_t first_at(const struct memory_trace *trace, uint64_t at_ns)
{
	size_t first = 0, end = trace->n_changes;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (trace->changes[middle].at_ns < at_ns)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

static void find_frees(struct recomputing *of)
{
	for (size_t i = 0; i < of->n_blocks; i++) {
		of->freed_at[i] = SIZE_MAX;
		of->again[i] = NEVER;
	}
	for (size_t i = 0; i < of->trace->n_changes; i++) {
		if (of->trace->changes[i].kind == TRACE_FREE)
			of->freed_at[of->trace->changes[i].block] = i;
	}
}

/*
 * Returns the block that is the call's result: of what its last operator left, the largest; NEVER:
 * nothing is left.
 */
static uint32_t find_result(const struct recomputing *of, const struct call_changes *call)
{
	const struct trace_block *blocks = of->trace->blocks;
	uint32_t result = NEVER;

	for (size_t i = call->first; i < call->end; i++) {
		const struct trace_change *change = &of->trace->changes[i];
		uint32_t block = change->block;

		if (change->kind != TRACE_ALLOC || of->freed_at[block] < call->end)
			continue;
		if (result == NEVER || blocks[block].call != blocks[result].call ||
		    blocks[block].bytes > blocks[result].bytes)
			result = block;
	}
	return result;
}

/* Choose what a call frees at its end: what lives until its backward pass, without the result. */
static void choose_dropped(struct recomputing *of, const struct call_changes *call)
{
	uint32_t result = find_result(of, call);

	for (size_t i = call->first; i < call->end; i++) {
		const struct trace_change *change = &of->trace->changes[i];

		if (change->kind != TRACE_ALLOC || change->block == result ||
		    of->freed_at[change->block] < call->backward ||
		    of->freed_at[change->block] == SIZE_MAX)
			continue;
		of->is_dropped[change->block] = true;
		of->dropped_blocks++;
		of->dropped_bytes += of->trace->blocks[change->block].bytes;
	}
}

static int compare_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	int rc = (x->at > y->at) - (x->at < y->at);

	return rc ? rc : (x->call > y->call) - (x->call < y->call);
}

static void add_calls(struct recomputing *of, const struct module_calls *calls)
{
	for (size_t i = 0; i < calls->n; i++) {
		const struct module_call *call = &calls->items[i];
		struct call_changes *changes = &of->calls[of->n_calls];

		if (!call->backward_ns || call->backward_ns < call->end_ns)
			continue;
		changes->first = first_at(of->trace, call->start_ns);
		changes->end = first_at(of->trace, call->end_ns);
		changes->backward = first_at(of->trace, call->backward_ns);
		choose_dropped(of, changes);
		of->turns[of->n_turns++] = (struct turn){.at = changes->end, .call = of->n_calls};
		of->turns[of->n_turns++] = (struct turn){
			.at = changes->backward, .call = of->n_calls, .is_backward = true};
		of->n_calls++;
	}
	if (of->n_turns)
		qsort(of->turns, of->n_turns, sizeof(*of->turns), compare_turns);
}

static void add_change(struct recomputing *of, enum trace_kind kind, uint32_t block, uint64_t at_ns)
{
	torsh_memory_trace_add(
		&of->made, &(struct trace_change){.at_ns = at_ns, .block = block, .kind = kind});
}

static void end_forward(struct recomputing *of, const struct call_changes *call, uint64_t at_ns)
{
	for (size_t i = call->first; i < call->end; i++) {
		const struct trace_change *change = &of->trace->changes[i];

		if (change->kind == TRACE_ALLOC && of->is_dropped[change->block])
			add_change(of, TRACE_FREE, change->block, at_ns);
	}
}

static void free_again(struct recomputing *of, uint32_t block, uint64_t at_ns)
{
	if (of->again[block] == NEVER)
		return;
	add_change(of, TRACE_FREE, of->again[block], at_ns);
	of->again[block] = NEVER;
}

/* Do a call's allocations again, and free what its backward pass doesn't need. */
static void begin_backward(struct recomputing *of, const struct call_changes *call, uint64_t at_ns)
{
	for (size_t i = call->first; i < call->end; i++) {
		const struct trace_change *change = &of->trace->changes[i];
		struct trace_block block;

		if (change->kind == TRACE_FREE)
			free_again(of, change->block, at_ns);
		if (change->kind != TRACE_ALLOC)
			continue;
		block = of->trace->blocks[change->block];
		block.at_ns = at_ns;
		of->again[change->block] = torsh_memory_trace_add_block(of->trace, &block);
		add_change(of, TRACE_ALLOC, of->again[change->block], at_ns);
	}
	for (size_t i = call->first; i < call->end; i++) {
		const struct trace_change *change = &of->trace->changes[i];

		if (change->kind == TRACE_ALLOC && !of->is_dropped[change->block])
			free_again(of, change->block, at_ns);
	}
}

static void repeat(struct recomputing *of, const struct trace_change *change)
{
	if (change->kind == TRACE_FREE && of->is_dropped[change->block])
		free_again(of, change->block, change->at_ns);
	else
		torsh_memory_trace_add(&of->made, change);
}

static void write_changes(struct recomputing *of)
{
	size_t next = 0;

	for (size_t i = 0; i < of->trace->n_changes; i++) {
		for (; next < of->n_turns && of->turns[next].at == i; next++) {
			const struct turn *turn = &of->turns[next];
			uint64_t at_ns = of->trace->changes[i].at_ns;

			if (turn->is_backward)
				begin_backward(of, &of->calls[turn->call], at_ns);
			else
				end_forward(of, &of->calls[turn->call], at_ns);
		}
		repeat(of, &of->trace->changes[i]);
	}
}

static void add_sentences(const struct recomputing *of, const struct module_calls *calls,
			  struct assumptions *assumptions)
{
	char n[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES], bytes[SIZE_TEXT_BYTES];

	torsh_assumptions_add(assumptions,
			      "%s of the module are checkpointed: %s with %s in all are freed when "
			      "a call ends, and allocated again before the first operator of its "
			      "backward pass, with what its operators need meanwhile.",
			      torsh_size_counted(of->n_calls, "call", n),
			      torsh_size_counted(of->dropped_blocks, "block", blocks),
			      torsh_size_human(of->dropped_bytes, bytes));
	torsh_assumptions_add(assumptions,
			      "The largest block of the last operator of a call is its result, "
			      "which stays.");
	if (calls->n > of->n_calls)
		torsh_assumptions_add(assumptions, "%s without a backward pass stay as they were.",
				      torsh_size_counted(calls->n - of->n_calls, "call", n));
}

void torsh_recompute(struct memory_trace *trace, const struct module_calls *calls,
		     struct assumptions *assumptions)
{
	struct recomputing of = {.trace = trace, .n_blocks = trace->n_blocks};

	of.calls = torsh_need_items(NULL, 0, calls->n, sizeof(*of.calls));
	of.turns = torsh_need_items(NULL, 0, 2 * calls->n, sizeof(*of.turns));
	of.freed_at = torsh_need_items(NULL, 0, of.n_blocks, sizeof(*of.freed_at));
	of.is_dropped = torsh_need_items(NULL, 0, of.n_blocks, sizeof(*of.is_dropped));
	of.again = torsh_need_items(NULL, 0, of.n_blocks, sizeof(*of.again));
	find_frees(&of);
	add_calls(&of, calls);
	write_changes(&of);
	add_sentences(&of, calls, assumptions);
	free(trace->changes);
	trace->changes = of.made.changes;
	trace->n_changes = of.made.n_changes;
	trace->changes_room = of.made.changes_room;
	free(of.calls);
	free(of.turns);
	free(of.freed_at);
	free(of.is_dropped);
	free(of.again);
}
