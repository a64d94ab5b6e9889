/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The calls of modules in the forward pass, and when their backward passes began. */
#ifndef TORSH_MEMORY_WHATIF_MODULE_CALLS_H
#define TORSH_MEMORY_WHATIF_MODULE_CALLS_H

#include "tools/timeline/prepass/prepass.h"

#define CALL_INPUTS_MAX 6u

/* An operator that no other one called. */
struct call_operator {
	uint64_t start_ns, end_ns;
	uint64_t input_bytes
		[CALL_INPUTS_MAX]; /* of its tensors, in order; further ones are left out */
	uint32_t n_inputs;
	bool is_in_place; /* its result is its first input: "add_" */
};

struct module_call {
	uint64_t start_ns, end_ns;
	uint64_t backward_ns; /* of the first operator of its backward pass; 0: there was none */
	uint64_t first_sequence, last_sequence; /* of its operators */
	uint32_t thread;
	/* among the operators of all calls; the one behind them, if there is one, came next */
	size_t first_operator, n_operators;
};

struct module_calls {
	struct module_call *items; /* in the order of their starts; none inside another */
	size_t n, n_room;
	struct call_operator *operators; /* on the threads of the calls, call by call */
	size_t n_operators, operators_room;
};

/*
 * Collect the calls of modules with that class, path or both ("Block", "layers.0",
 * "Model.layers.0:Block"); the outermost where they nest. Ends the program if the recording cannot
 * be read.
 */
void torsh_module_calls_collect(struct module_calls *calls, const char *module,
				const struct recording *recording, struct recorded_process *process,
				const struct prepass *prepass);

/* Free the calls. */
void torsh_module_calls_free(struct module_calls *calls);

/* Whether a module's label, "Model.layers.0:Block", is meant by that class, path or label. */
bool torsh_module_is(const char *label, const char *module);

#endif
