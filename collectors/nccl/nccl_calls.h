/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a descriptor of NCCL's profiler interface says, in the agent's words. */
#ifndef TORSH_COLLECTORS_NCCL_NCCL_CALLS_H
#define TORSH_COLLECTORS_NCCL_NCCL_CALLS_H

#include "agent/wire/event.h"
#include "shim/nccl/nccl.h"

/* The communicator, as interfaces 1 to 3 name it with each call. */
struct nccl_named {
	const char *name;
	uint64_t hash; /* 0: not named */
};

/* An event that begins. */
struct nccl_begin {
	uint32_t version;
	uint64_t context;
	const struct nccl_descriptor *descriptor;
	uint64_t number, parent;
	bool is_foreign;
	uint32_t communicator; /* its number, 0: unknown */
	struct nccl_named named; /* set by torsh_nccl_describe */
};

/* Set event; returns false if such events are not recorded. */
bool torsh_nccl_describe(struct nccl_begin *begin, struct event *event);

/* Set what the arguments of a state say. */
void torsh_nccl_describe_state(uint32_t version, int number,
			       const union nccl_state_arguments *arguments,
			       struct event_nccl_state *state);

#endif
