/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What one process allocated and freed on one device, in order, without addresses: what
 * replay.h gives to the model of the allocator.
 */
#ifndef TORSH_MEMORY_WHATIF_MEMORY_TRACE_H
#define TORSH_MEMORY_WHATIF_MEMORY_TRACE_H

#include "tools/memory/tensors.h"
#include "tools/memory/whatif/allocation_size.h"

enum trace_kind {
	TRACE_ALLOC,
	TRACE_FREE,
	TRACE_RELEASE, /* of cached segments: by empty_cache(), or because memory ran out */
};

struct trace_change {
	uint64_t at_ns;
	uint32_t block; /* index; of TRACE_RELEASE: unused */
	enum trace_kind kind;
};

struct trace_block {
	uint64_t recorded_bytes; /* of the block that PyTorch gave out */
	uint64_t bytes; /* to allocate: first the requested size, as far as it is known */
	enum size_part part; /* whether that grows with the batch */
	struct reduction reduction; /* of which the block is the result, or has parts */
	bool is_parts;
	const char *operator_name, *module; /* texts of the recording; NULL: none */
	enum span_phase phase;
	uint64_t call; /* ordinal of the outermost operator + 1; 0: none */
	uint64_t at_ns;
};

struct memory_trace {
	const struct recorded_process *process;
	uint32_t device; /* type << 8 | index, in PyTorch's numbers */
	struct trace_change *changes;
	size_t n_changes, changes_room;
	struct trace_block *blocks;
	size_t n_blocks, blocks_room;
	struct tensor_sums recorded; /* the maxima */
	uint64_t n_threads; /* that the device runs at once; 0: unknown */
	uint64_t before_bytes; /* allocated before the recording began */
	uint64_t unknown_frees, releases, out_of_memory;
};

struct memory_traces {
	struct memory_trace *items;
	size_t n, n_room;
};

/*
 * Collect the traces of the process, of all devices whose allocator reports what it reserved. Ends
 * the program if the recording cannot be read.
 */
void torsh_memory_traces_collect(struct memory_traces *traces, const struct recording *recording,
				 struct recorded_process *process, const struct prepass *prepass,
				 const struct batch *batch);

/* Free the traces. */
void torsh_memory_traces_free(struct memory_traces *traces);

/* Add a change to a trace. */
void torsh_memory_trace_add(struct memory_trace *trace, const struct trace_change *change);

/* Add a block to a trace. Returns its index. */
uint32_t torsh_memory_trace_add_block(struct memory_trace *trace, const struct trace_block *block);

#endif
