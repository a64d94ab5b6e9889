/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/batch_scale.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "tools/base/size.h"

/* What is allocated, by part. */
struct parts {
	uint64_t bytes[N_SIZE_PARTS], blocks[N_SIZE_PARTS], sum;
};

static void change_parts(struct parts *parts, const struct trace_block *block, bool is_free)
{
	uint64_t bytes = is_free ? -block->recorded_bytes : block->recorded_bytes;

	parts->bytes[block->part] += bytes;
	parts->blocks[block->part] += is_free ? -UINT64_C(1) : 1;
	parts->sum += bytes;
}

/* What was allocated at the peak. */
static struct parts at_peak(const struct memory_trace *trace)
{
	struct parts parts = {0}, peak = {0};

	for (size_t i = 0; i < trace->n_changes; i++) {
		const struct trace_change *change = &trace->changes[i];

		if (change->kind == TRACE_RELEASE)
			continue;
		change_parts(&parts, &trace->blocks[change->block], change->kind == TRACE_FREE);
		if (parts.sum > peak.sum)
			peak = parts;
	}
	return peak;
}

static void add_part(struct assumptions *assumptions, const struct parts *peak, enum size_part part,
		     const char *what)
{
	char blocks[SIZE_TEXT_BYTES], bytes[SIZE_TEXT_BYTES];

	if (peak->blocks[part])
		torsh_assumptions_add(assumptions, "At the recorded peak %s with %s %s.",
				      torsh_size_counted(peak->blocks[part], "block", blocks),
				      torsh_size_human(peak->bytes[part], bytes), what);
}

static uint64_t multiply(uint64_t number, double factor)
{
	return (uint64_t)llround((double)number * factor);
}

/* The parts of a sum with another batch. */
static uint64_t parts_with(const struct memory_trace *trace, const struct reduction *reduction,
			   double factor)
{
	struct reduction other = *reduction;

	if (reduction->has_batch)
		other.rows = multiply(other.rows, factor);
	else
		other.columns = multiply(other.columns, factor);
	return torsh_reduction_bytes(&other, trace->n_threads);
}

static bool is_scaled(const struct trace_block *block)
{
	return block->part == SIZE_SCALES || block->part == SIZE_ASSUMED;
}

static void scale_block(const struct memory_trace *trace, struct trace_block *block, double factor)
{
	if (is_scaled(block))
		block->bytes = block->is_parts ? parts_with(trace, &block->reduction, factor)
					       : multiply(block->bytes, factor);
}

/* Whether the block is the result of a sum that needs parts with the other batch only. */
static bool needs_parts(const struct memory_trace *trace, const struct trace_block *block,
			double factor)
{
	return block->reduction.has_batch && !block->is_parts &&
	       !torsh_reduction_bytes(&block->reduction, trace->n_threads) &&
	       parts_with(trace, &block->reduction, factor);
}

/* Add a block for the parts of the sum whose result was allocated just now. */
static void add_parts(struct memory_trace *trace, struct memory_trace *made,
		      const struct trace_change *change, double factor)
{
	struct trace_block parts = trace->blocks[change->block];
	struct trace_change at = *change;

	parts.is_parts = true;
	parts.part = SIZE_SCALES;
	parts.bytes = parts_with(trace, &parts.reduction, factor);
	at.block = torsh_memory_trace_add_block(trace, &parts);
	torsh_memory_trace_add(made, &at);
	at.kind = TRACE_FREE;
	torsh_memory_trace_add(made, &at);
}

/* Add the parts of sums that had none. Returns the number of these sums. */
static uint64_t add_all_parts(struct memory_trace *trace, double factor)
{
	struct memory_trace made = {0};
	uint64_t n = 0;

	for (size_t i = 0; i < trace->n_changes; i++) {
		const struct trace_change *change = &trace->changes[i];

		torsh_memory_trace_add(&made, change);
		if (change->kind != TRACE_ALLOC ||
		    !needs_parts(trace, &trace->blocks[change->block], factor))
			continue;
		add_parts(trace, &made, change, factor);
		n++;
	}
	free(trace->changes);
	trace->changes = made.changes;
	trace->n_changes = made.n_changes;
	trace->changes_room = made.changes_room;
	return n;
}

static void add_sums(struct assumptions *assumptions, uint64_t n_sums)
{
	char text[SIZE_TEXT_BYTES];

	if (n_sums)
		torsh_assumptions_add(assumptions,
				      "%s over the batch, such as gradients of biases, need memory "
				      "for parts, which the recorded batch was too small for.",
				      torsh_size_counted(n_sums, "sum", text));
}

void torsh_batch_scale(struct memory_trace *trace, const struct batch *batch, double factor,
		       struct assumptions *assumptions)
{
	struct parts peak = at_peak(trace);

	if (!batch->size) {
		torsh_assumptions_add(assumptions,
				      "No shapes of operators' inputs were recorded: nothing is "
				      "known to grow with the batch.");
		return;
	}
	torsh_assumptions_add(assumptions,
			      "The batch is %" PRIu64 ", the most frequent first dimension of what "
			      "operators get in the forward pass; it becomes %" PRIu64 ".",
			      batch->size, multiply(batch->size, factor));
	add_part(assumptions, &peak, SIZE_SCALES, "grow with it, by their shapes");
	add_part(assumptions, &peak, SIZE_ASSUMED,
		 "are taken to grow with it: an input of their operator has it");
	add_part(assumptions, &peak, SIZE_FIXED,
		 "do not: parameters, gradients, the optimizer's state, workspaces");
	add_part(assumptions, &peak, SIZE_UNKNOWN, "are taken not to: they have no shape");
	for (size_t i = 0; i < trace->n_blocks; i++)
		scale_block(trace, &trace->blocks[i], factor);
	add_sums(assumptions, add_all_parts(trace, factor));
	if (!trace->n_threads)
		torsh_assumptions_add(assumptions,
				      "The device's properties are not recorded: how far sums over "
				      "the batch are divided is estimated without them.");
}
