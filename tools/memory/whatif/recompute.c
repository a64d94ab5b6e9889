/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/recompute.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/memory/whatif/last_reads.h"

#define NEVER UINT32_MAX

/* The changes of a trace that belong to a call, by index. */
struct call_changes {
	size_t first, end, backward;
	uint32_t result; /* the block; NEVER: none */
};

/* A block of a call is freed, or its backward pass begins. */
struct turn {
	size_t at; /* before this change */
	size_t call;
	bool is_backward;
	uint32_t block; /* that is freed */
};

struct recomputing {
	struct memory_trace *trace;
	struct call_changes *calls;
	size_t n_calls;
	struct turn *turns; /* in order */
	size_t n_turns, turns_room;
	size_t *freed_at; /* by block: index of the change; SIZE_MAX: never */
	bool *is_dropped; /* by block: freed at the end of its call */
	uint32_t *again; /* by block: what replaces it; NEVER: nothing yet */
	size_t n_blocks; /* of the recorded run */
	struct memory_trace made; /* its changes only */
	uint64_t dropped_blocks, dropped_bytes, early_blocks;
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

/* Returns whether the operator after the call can read that block; false: it is not known. */
static bool is_read_next(const struct recomputing *of, const struct module_calls *calls,
			 const struct module_call *call, uint32_t block)
{
	size_t next = call->first_operator + call->n_operators;
	const struct call_operator *operator= calls->operators + next;

	if (next >= calls->n_operators)
		return false;
	for (uint32_t i = 0; i < operator->n_inputs; i++) {
		if (torsh_can_be_in_block(operator->input_bytes[i],
					  of->trace->blocks[block].recorded_bytes))
			return true;
	}
	return false;
}

/* Returns whether the block a is rather the call's result than b, which was allocated before. */
static bool is_rather_result(const struct recomputing *of, const struct module_calls *calls,
			     const struct module_call *call, uint32_t a, uint32_t b)
{
	const struct trace_block *blocks = of->trace->blocks;
	bool a_is_read = is_read_next(of, calls, call, a);

	if (a_is_read != is_read_next(of, calls, call, b))
		return a_is_read;
	/* The backward pass is done with a result before it begins with what the call kept. */
	if (a_is_read)
		return of->freed_at[a] < of->freed_at[b];
	return blocks[a].call != blocks[b].call || blocks[a].bytes > blocks[b].bytes;
}

/*
 * Returns the block that is the call's result: of what the next operator can read, what is freed
 * first; otherwise, of what the last operator left, the largest. NEVER: nothing is left.
 */
static uint32_t find_result(const struct recomputing *of, const struct module_calls *calls,
			    size_t number)
{
	const struct call_changes *call = &of->calls[of->n_calls];
	uint32_t result = NEVER;

	for (size_t i = call->first; i < call->end; i++) {
		const struct trace_change *change = &of->trace->changes[i];

		if (change->kind != TRACE_ALLOC || of->freed_at[change->block] < call->end)
			continue;
		if (result == NEVER ||
		    is_rather_result(of, calls, &calls->items[number], change->block, result))
			result = change->block;
	}
	return result;
}

static void add_turn(struct recomputing *of, const struct turn *turn)
{
	of->turns =
		torsh_array_reserve(of->turns, of->n_turns, &of->turns_room, sizeof(*of->turns));
	of->turns[of->n_turns++] = *turn;
}

static uint64_t time_of_free(const struct recomputing *of, uint32_t block)
{
	size_t at = of->freed_at[block];

	return at == SIZE_MAX ? UINT64_MAX : of->trace->changes[at].at_ns;
}

/* Returns the blocks that a call allocates, with when they would be free; the caller frees. */
static struct read_block *find_reads(const struct recomputing *of, const struct module_calls *calls,
				     size_t number, size_t *n)
{
	const struct call_changes *call = &of->calls[of->n_calls];
	const struct module_call *module = &calls->items[number];
	struct read_block *blocks =
		torsh_need_items(NULL, 0, call->end - call->first + 1, sizeof(*blocks));

	*n = 0;
	for (size_t i = call->first; i < call->end; i++) {
		const struct trace_change *change = &of->trace->changes[i];

		if (change->kind == TRACE_ALLOC)
			blocks[(*n)++] = (struct read_block){
				.bytes = of->trace->blocks[change->block].recorded_bytes,
				.from_ns = change->at_ns,
				.until_ns = time_of_free(of, change->block),
				.block = change->block};
	}
	torsh_last_reads_find(calls->operators + module->first_operator, module->n_operators,
			      blocks, *n);
	return blocks;
}

/*
 * Choose what a call frees, after the last operator that reads it or at its end: what lives until
 * its backward pass, without the result.
 */
static void choose_dropped(struct recomputing *of, const struct module_calls *calls, size_t number)
{
	struct call_changes *call = &of->calls[of->n_calls];
	size_t n;
	struct read_block *reads = find_reads(of, calls, number, &n);

	call->result = find_result(of, calls, number);
	for (size_t i = 0; i < n; i++) {
		uint32_t block = reads[i].block;
		size_t last = reads[i].last_read_ns ? first_at(of->trace, reads[i].last_read_ns)
						    : call->end;

		if (block == call->result || of->freed_at[block] < call->backward ||
		    of->freed_at[block] == SIZE_MAX)
			continue;
		of->is_dropped[block] = true;
		of->dropped_blocks++;
		of->dropped_bytes += of->trace->blocks[block].bytes;
		of->early_blocks += last < call->end;
		add_turn(of, &(struct turn){.at = last < call->end ? last : call->end,
					    .call = of->n_calls,
					    .block = block});
	}
	free(reads);
}

static int compare_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	int rc = (x->at > y->at) - (x->at < y->at);

	if (!rc)
		rc = (x->call > y->call) - (x->call < y->call);
	return rc ? rc : (x->block > y->block) - (x->block < y->block);
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
		choose_dropped(of, calls, i);
		add_turn(of, &(struct turn){.at = changes->backward,
					    .call = of->n_calls,
					    .is_backward = true});
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

static void free_again(struct recomputing *of, uint32_t block, uint64_t at_ns)
{
	if (of->again[block] == NEVER)
		return;
	add_change(of, TRACE_FREE, of->again[block], at_ns);
	of->again[block] = NEVER;
}

/*
 * What still has the result is the call's own backward pass: it gets that of the call's second run.
 */
static void replace_result(struct recomputing *of, const struct call_changes *call, uint64_t at_ns)
{
	uint32_t result = call->result;

	if (result == NEVER || of->freed_at[result] < call->backward ||
	    of->freed_at[result] == SIZE_MAX)
		return;
	add_change(of, TRACE_FREE, result, at_ns);
	of->is_dropped[result] = true;
}

/* Do a call's allocations again, and free what its backward pass doesn't need. */
static void begin_backward(struct recomputing *of, const struct call_changes *call, uint64_t at_ns)
{
	replace_result(of, call, at_ns);
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
				add_change(of, TRACE_FREE, turn->block, at_ns);
		}
		repeat(of, &of->trace->changes[i]);
	}
}

static void add_sentences(const struct recomputing *of, const struct module_calls *calls,
			  struct assumptions *assumptions)
{
	char n[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES], bytes[SIZE_TEXT_BYTES],
		early[SIZE_TEXT_BYTES];

	torsh_assumptions_add(
		assumptions,
		"%s of the module are checkpointed: %s with %s in all are freed when "
		"a call ends or, %s of them, after the last operator that reads them, "
		"and allocated again before the first operator of its backward pass, "
		"with what its operators need meanwhile.",
		torsh_size_counted(of->n_calls, "call", n),
		torsh_size_counted(of->dropped_blocks, "block", blocks),
		torsh_size_human(of->dropped_bytes, bytes),
		torsh_size_grouped(of->early_blocks, early));
	torsh_assumptions_add(
		assumptions,
		"Which tensors an operator reads is concluded from their sizes. Of the blocks that "
		"the operator after a call can read, the one that is freed first is the call's "
		"result, which stays; if there is none, the largest of its last operator.");
	if (calls->n > of->n_calls)
		torsh_assumptions_add(assumptions, "%s without a backward pass stay as they were.",
				      torsh_size_counted(calls->n - of->n_calls, "call", n));
}

void torsh_recompute(struct memory_trace *trace, const struct module_calls *calls,
		     struct assumptions *assumptions)
{
	struct recomputing of = {.trace = trace, .n_blocks = trace->n_blocks};

	of.calls = torsh_need_items(NULL, 0, calls->n, sizeof(*of.calls));
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
