/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which memory of a training grows with its batch, by the shapes of the operators that allocated
 * it.
 *
 * The batch is the most frequent leading dimension of what operators outside of others get in the
 * forward pass and the loss, without parameters. Shapes of parameters are those that the optimizer
 * and AccumulateGrad get, and those of weights by their position. A shape has the batch if a
 * dimension is equal to it, or a multiple that is no dimension of parameters and does not lie
 * beside the batch elsewhere.
 */
#ifndef TORSH_MEMORY_SHAPES_BATCH_H
#define TORSH_MEMORY_SHAPES_BATCH_H

#include "tools/base/containers/key_index.h"
#include "tools/timeline/inputs.h"
#include "tools/timeline/prepass/prepass.h"

struct shape {
	int64_t dims[INPUT_DIMS_MAX];
	uint32_t n;
};

struct dimension_count {
	int64_t size;
	uint64_t n;
};

struct batch {
	uint64_t size; /* 0: none was found */
	struct key_index parameters; /* hashes of their shapes */
	struct key_index parameter_elements; /* their numbers of elements */
	struct key_index parameter_dims, other_dims; /* other_dims: beside the batch */
	struct key_index lengths; /* of sequences: second dimensions of three, the batch first */
	struct dimension_count *leading;
	size_t n_leading, leading_room;
};

#define BATCH_NONE (-1) /* no dimension has the batch */

/* Collect the shapes of the process. Ends the program if the recording cannot be read. */
void torsh_batch_collect(struct batch *batch, const struct recording *recording,
			 struct recorded_process *process, const struct prepass *prepass);

/* Free the shapes. */
void torsh_batch_free(struct batch *batch);

/*
 * Returns the index of the dimension that has the batch, or BATCH_NONE. A shape that is a
 * parameter's as well as that of a batch of sequences counts as the latter.
 */
int torsh_batch_dimension(const struct batch *batch, const struct shape *shape);

/* Whether the shape is that of a parameter. */
bool torsh_batch_is_parameter(const struct batch *batch, const struct shape *shape);

/* Whether a parameter has so many elements. */
bool torsh_batch_has_parameter_of(const struct batch *batch, uint64_t n_elements);

/* The shape of an input, its dimensions in the order of memory. */
struct shape torsh_shape_of_memory(const struct input *tensor);

/* The shape of an input. */
struct shape torsh_shape_of(const struct input *tensor);

/* Returns its number of elements; 0 if that is invalid. */
uint64_t torsh_shape_elements(const struct shape *shape);

#endif
