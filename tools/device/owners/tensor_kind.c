/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/tensor_kind.h"

#include <stddef.h>

#define PASSES_OF_PARAMETERS 2 /* what a step gets lives into the next one at most */

const char *const torsh_owner_names[N_OWNER_KINDS] = {
#define OWNER(NAME, name, text) #name,
	OWNER_KINDS
#undef OWNER
};

const char *const torsh_owner_texts[N_OWNER_KINDS] = {
#define OWNER(NAME, name, text) text,
	OWNER_KINDS
#undef OWNER
};

static struct tensor_kind of_kind(enum owner_kind kind)
{
	return (struct tensor_kind){.kind = kind};
}

static bool is_freed_in_its_call(const struct tensor_life *life)
{
	return life->is_freed && life->made.call && life->freed.call == life->made.call;
}

static bool is_freed_in_backward(const struct tensor_life *life)
{
	return life->is_freed &&
	       (life->freed.phase == PHASE_BACKWARD || life->freed.pass != PASS_NONE);
}

/* Whether it was freed in the backward pass that made it. */
static bool is_freed_in_its_pass(const struct tensor_life *life)
{
	if (!is_freed_in_backward(life))
		return false;
	return life->made.pass == PASS_NONE || life->freed.pass == life->made.pass;
}

static struct tensor_kind kind_in_setup(const struct tensor_life *life)
{
	if (life->is_freed && life->freed.phase == PHASE_SETUP)
		return of_kind(OWNER_TEMPORARIES);
	if (life->has_parameter_shape &&
	    (!life->is_freed || life->n_passes >= PASSES_OF_PARAMETERS))
		return of_kind(OWNER_PARAMETERS);
	if (life->source != FROM_DEVICE)
		return of_kind(OWNER_INPUTS);
	return (struct tensor_kind){
		.kind = OWNER_UNKNOWN,
		.reason = "computed before the first step, and of no parameter's shape"};
}

/* What the forward pass made, and a module's call or autograd's graph kept. */
static struct tensor_kind kind_in_forward(const struct tensor_life *life)
{
	if (!life->is_in_module && life->source != FROM_DEVICE)
		return of_kind(OWNER_INPUTS);
	if (life->is_in_module ? life->is_freed && !life->is_module_over
			       : life->is_freed && !life->n_passes && !life->has_graph &&
					 !is_freed_in_backward(life))
		return of_kind(OWNER_TEMPORARIES);
	if (is_freed_in_backward(life))
		return of_kind(life->is_first_gradient ? OWNER_TEMPORARIES : OWNER_ACTIVATIONS);
	if (life->n_passes || !life->has_graph)
		return of_kind(OWNER_OUTPUTS);
	/* Freed without a pass: outside of modules it is an intermediate result. */
	if (life->is_freed && !life->is_in_module)
		return of_kind(OWNER_TEMPORARIES);
	return (struct tensor_kind){.kind = OWNER_ACTIVATIONS,
				    .reason = "kept by autograd: no backward pass followed"};
}

static struct tensor_kind kind_in_backward(const struct tensor_life *life)
{
	if (life->is_first_gradient)
		return of_kind(OWNER_TEMPORARIES);
	/* The forward pass again, of a checkpoint. */
	if (!life->is_of_backward && life->has_graph) {
		if (life->is_in_module && life->is_freed && !life->is_module_over)
			return of_kind(OWNER_TEMPORARIES);
		return of_kind(is_freed_in_backward(life) ? OWNER_ACTIVATIONS : OWNER_OUTPUTS);
	}
	if (is_freed_in_its_pass(life))
		return of_kind(OWNER_TEMPORARIES);
	/* After the pass, before the optimizer: the program's own work with gradients. */
	return of_kind(life->is_of_backward ? OWNER_GRADIENTS : OWNER_OUTPUTS);
}

static struct tensor_kind kind_in_optimizer(const struct tensor_life *life)
{
	bool is_temporary = life->is_freed && life->freed.update == life->made.update &&
			    life->freed.phase == PHASE_OPTIMIZER;

	return of_kind(is_temporary ? OWNER_TEMPORARIES : OWNER_OPTIMIZER_STATE);
}

struct tensor_kind torsh_tensor_kind(const struct tensor_life *life)
{
	switch (life->evidence) {
	case STACK_OF_LIBRARY:
		return of_kind(OWNER_WORKSPACE);
	case STACK_OF_MODULE:
		return of_kind(is_freed_in_its_call(life) ? OWNER_TEMPORARIES : OWNER_PARAMETERS);
	default:
		break;
	}
	if (!life->has_operator)
		return (struct tensor_kind){.kind = OWNER_UNKNOWN,
					    .reason = "allocated in no operator"};
	if (is_freed_in_its_call(life))
		return of_kind(OWNER_TEMPORARIES);
	if (life->evidence == STACK_OF_OPTIMIZER)
		return of_kind(OWNER_OPTIMIZER_STATE);
	switch (life->made.phase) {
	case PHASE_SETUP:
		return kind_in_setup(life);
	case PHASE_DATA:
		return of_kind(OWNER_INPUTS);
	case PHASE_BACKWARD:
		return kind_in_backward(life);
	case PHASE_OPTIMIZER:
		return kind_in_optimizer(life);
	default:
		return kind_in_forward(life);
	}
}
