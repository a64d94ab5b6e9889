/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where some tensors of a process were allocated and freed: those that were alive at a moment. One
 * pass over the timeline.
 */
#ifndef TORSH_DEVICE_OWNERS_TENSOR_LIVES_H
#define TORSH_DEVICE_OWNERS_TENSOR_LIVES_H

#include "tools/base/containers/hash_map.h"
#include "tools/device/owners/tensor_kind.h"
#include "tools/memory/shapes/batch.h"

struct tensor_of_owner {
	uint64_t address, bytes;
	uint64_t inside_bytes; /* on the device that is looked at */
	uint64_t made_ns;
	bool is_block; /* got from the driver in an operator: the allocator reports no tensors */
	uint32_t stack;
	struct tensor_life life;
	const char *operator_name, *module; /* texts of the recording; NULL: none */
};

struct tensor_lives {
	const struct recorded_process *process;
	uint32_t device; /* in PyTorch's numbers */
	struct tensor_of_owner *items;
	size_t n, n_room;

	/* For tensor_lives.c only. */
	const struct batch *batch;
	struct hash_map by_address;
	uint64_t *modules; /* by item: the outermost module's number + 1; 0: none */
	uint64_t *open; /* calls of outermost modules, likewise */
	size_t n_open, open_room;
	struct inputs *inputs;
};

/* Add a tensor that is alive at the moment. */
void torsh_tensor_lives_add(struct tensor_lives *lives, const struct tensor_of_owner *tensor);

/*
 * Set the lives of all tensors that were added. prepass and batch are those of the process. Ends
 * the program if the recording cannot be read.
 */
void torsh_tensor_lives_collect(struct tensor_lives *lives, const struct recording *recording,
				const struct prepass *prepass, const struct batch *batch);

/* Free the tensors. */
void torsh_tensor_lives_free(struct tensor_lives *lives);

#endif
