/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/batch_scale.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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
			      batch->size, (uint64_t)llround((double)batch->size * factor));
	add_part(assumptions, &peak, SIZE_SCALES, "grow with it, by their shapes");
	add_part(assumptions, &peak, SIZE_ASSUMED,
		 "are taken to grow with it: an input of their operator has it");
	add_part(assumptions, &peak, SIZE_FIXED,
		 "do not: parameters, gradients, the optimizer's state, workspaces");
	add_part(assumptions, &peak, SIZE_UNKNOWN, "are taken not to: they have no shape");
	for (size_t i = 0; i < trace->n_blocks; i++) {
		struct trace_block *block = &trace->blocks[i];

		if (block->part == SIZE_SCALES || block->part == SIZE_ASSUMED)
			block->bytes = (uint64_t)llround((double)block->bytes * factor);
	}
}
