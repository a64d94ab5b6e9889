/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The kinds of owners of a device's memory. */
#ifndef TORSH_DEVICE_OWNERS_OWNER_KINDS_H
#define TORSH_DEVICE_OWNERS_OWNER_KINDS_H

/* OWNER(NAME, name, text) */
#define OWNER_KINDS                                                                 \
	OWNER(PARAMETERS, parameters, "parameters and buffers")                     \
	OWNER(GRADIENTS, gradients, "gradients")                                    \
	OWNER(OPTIMIZER_STATE, optimizer_state, "state of the optimizer")           \
	OWNER(ACTIVATIONS, activations, "activations, kept for the backward pass")  \
	OWNER(OUTPUTS, outputs, "results that the program keeps")                   \
	OWNER(INPUTS, inputs, "inputs")                                             \
	OWNER(TEMPORARIES, temporaries, "temporaries")                              \
	OWNER(UNKNOWN, unknown, "tensors of unknown kind")                          \
	OWNER(WORKSPACE, workspace, "workspaces of libraries")                      \
	OWNER(CACHE, cache, "reserved by the framework's allocator and free")       \
	OWNER(GRAPH_POOL, graph_pool, "reserved for CUDA graphs and free")          \
	OWNER(DIRECT, direct, "allocations of the program")                         \
	OWNER(POOL, pool, "reserved by CUDA's own pool and free")                   \
	OWNER(CODE, code, "code of modules")                                        \
	OWNER(OTHER_PROCESSES, other_processes, "other processes")                  \
	OWNER(CONTEXT, context, "the context, and programs that were not recorded") \
	OWNER(REMAINDER, remainder, "the rest of the driver's figure: code, rounding")

enum owner_kind {
#define OWNER(NAME, name, text) OWNER_##NAME,
	OWNER_KINDS
#undef OWNER
		N_OWNER_KINDS
};

extern const char *const torsh_owner_names[N_OWNER_KINDS];
extern const char *const torsh_owner_texts[N_OWNER_KINDS];

#endif
