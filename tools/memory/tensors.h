/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The groups of tensors at their peak, per process and device. Two passes over the timeline: the
 * first one finds the moment.
 */
#ifndef TORSH_MEMORY_TENSORS_H
#define TORSH_MEMORY_TENSORS_H

#include "tools/timeline/prepass/prepass.h"

/* GROUP(NAME, name, the property that the tensors share) */
#define TENSOR_GROUPS                                                                 \
	GROUP(OPERATOR, operator, "the operator that allocated them, and its module") \
	GROUP(STACK, stack, "the stack that allocated them")

enum tensor_group {
#define GROUP(NAME, name, text) TENSORS_BY_##NAME,
	TENSOR_GROUPS
#undef GROUP
		N_TENSOR_GROUPS
};

extern const char *const torsh_tensor_group_names[N_TENSOR_GROUPS];

struct tensor_site {
	const char *operator_name, *module; /* NULL: none. Texts of the recording */
	enum span_phase phase;
	uint32_t stack;
	uint64_t blocks, bytes; /* at the peak */
	uint64_t current_blocks, current_bytes;
};

/*
 * The values that a caching allocator reports after an event; reserved minus allocated bytes are
 * fragmentation.
 */
struct tensor_sums {
	uint64_t allocated, reserved;
};

/*
 * Returns true if the event has such sums. The host has no caching allocator: a block of shared
 * memory is reported alone (nothing allocated, its size reserved), and after a fork the allocated
 * bytes include the parent's.
 */
static inline bool torsh_tensor_has_sums(const struct event_tensor *tensor)
{
	return tensor->device != 0;
}

struct tensor_device {
	const struct recorded_process *process;
	uint32_t device; /* type << 8 | index, in PyTorch's numbers */
	uint64_t peak_bytes, peak_blocks, peak_ns;
	/* unknown_frees: of tensors that were allocated before the recording */
	uint64_t allocs, frees, unknown_frees;
	uint64_t held_bytes, held_blocks; /* at the end */
	uint64_t largest_allocated, largest_reserved; /* as the allocator reports; 0: it doesn't */
	uint64_t allocated_then; /* its value when reserved was at its maximum */
	struct tensor_sums at_peak, at_end; /* at_peak: when tensors had most bytes */
	/* and its time; valid if largest_reserved isn't 0 */
	uint64_t largest_fragmentation, fragmentation_ns;
	uint64_t out_of_memory; /* number of requests that it could not satisfy */
	struct tensor_site *sites;
	size_t n_sites, holders_room;
};

struct tensors {
	struct tensor_device *items;
	size_t n, n_room;
};

/*
 * Collect the tensors at their peak, by group, in two passes. Ends the program if the recording
 * cannot be read.
 */
void torsh_tensors_collect(struct tensors *tensors, enum tensor_group group,
			   const struct recording *recording,
			   struct recorded_process *const *processes, size_t n_processes,
			   const struct prepass *prepass);

/* Free the tensors. */
void torsh_tensors_free(struct tensors *tensors);

#endif
