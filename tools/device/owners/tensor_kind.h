/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The kind of a tensor's memory, by where it was allocated and where it was freed.
 *
 * A gradient is allocated in a backward pass and outlives it; the optimizer's state is allocated in
 * a step of the optimizer and outlives that; an activation is allocated in the forward pass and
 * freed in a backward pass. What its own operator, its module's call or its backward pass frees is
 * temporary. Parameters are what torch.nn.Module allocated or, where stacks don't show that, what
 * lives on from before the first step with the shape of a parameter.
 */
#ifndef TORSH_DEVICE_OWNERS_TENSOR_KIND_H
#define TORSH_DEVICE_OWNERS_TENSOR_KIND_H

#include "tools/device/owners/owner_kinds.h"
#include "tools/timeline/spans.h"

#define PASS_NONE SIZE_MAX

/* Where a tensor was allocated or freed. */
struct tensor_moment {
	uint64_t at_ns;
	enum span_phase phase; /* of its operator; without one, that of the time */
	size_t pass; /* the backward pass at that time, by index; PASS_NONE: none */
	/* Ordinals + 1 of the outermost operator, and of the optimizer's step; 0: none. */
	uint64_t call, update;
};

/* What the operator that allocated a tensor got. */
enum tensor_source { FROM_NOTHING, FROM_HOST, FROM_DEVICE };

/* What a stack shows of the memory that it allocated. */
enum stack_evidence {
	STACK_SHOWS_NOTHING,
	STACK_OF_MODULE, /* torch.nn.Module made, moved or converted its parameters */
	STACK_OF_OPTIMIZER, /* torch.optim or torch.amp made what they keep */
	STACK_OF_LIBRARY, /* a library's workspace */
};

struct tensor_life {
	struct tensor_moment made, freed; /* freed: valid if is_freed */
	bool is_freed;
	bool has_operator;
	bool is_of_backward; /* made by a node of autograd */
	bool is_first_gradient; /* as of a loss, which a backward pass starts with */
	bool has_graph; /* autograd recorded its operator, for a backward pass */
	bool is_in_module; /* made in a call of a module */
	bool is_module_over; /* that call ended before the free */
	bool has_parameter_shape;
	enum tensor_source source;
	enum stack_evidence evidence;
	size_t n_passes; /* backward passes that began between both */
};

struct tensor_kind {
	enum owner_kind kind;
	const char *reason; /* why it is unknown, or what is assumed; NULL: neither */
};

/* Returns the kind of a tensor with that life. */
struct tensor_kind torsh_tensor_kind(const struct tensor_life *life);

#endif
