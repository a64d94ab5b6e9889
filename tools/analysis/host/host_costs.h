/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What operators of a few names cost the host in the whole steps after the first, for the rules
 * that are about one of them each.
 */
#ifndef TORSH_ANALYSIS_HOST_HOST_COSTS_H
#define TORSH_ANALYSIS_HOST_HOST_COSTS_H

#include "agent/wire/event.h"
#include "tools/analysis/time_scope.h"
#include "tools/base/containers/hash_map.h"
#include "tools/timeline/device/busy.h"

enum host_cost {
	COST_NONE,
	COST_SCALAR_READ, /* a tensor's value as a number of Python */
	COST_CONTIGUOUS, /* that copied */
	COST_CAT, /* of a tensor that grows */
	COST_CONSTANT, /* made of the same numbers as before */
	COST_FLOAT64, /* the outermost operators on it */
	COST_ZERO_GRAD, /* that filled gradients */
	COST_OPTIMIZER, /* its whole step */
	COST_OPTIMIZER_OPERATOR, /* in it, those that call no other */
	COST_EMBEDDING_GRADIENT, /* with many more rows than indices */
	COST_GUARDS, /* torch.compile looks for the code of a call */
	COST_TRAINING_LAYER, /* dropout, and normalization by the batch's statistics */
	COST_LOAD_ALONE, /* a DataLoader without workers */
	COST_LOAD_BY_WORKERS, /* a DataLoader with workers is waited for */
	COST_LOAD_OPERATOR, /* in a DataLoader, those that call no other */
	N_HOST_COSTS
};

struct cost_sum {
	uint64_t n, ns, longest_ns, longest_at_ns;
	uint32_t stack; /* of the longest, and its operator */
	const char *operator_name;
};

/* A tensor that a line makes longer by concatenation. */
struct growing_tensor {
	struct cost_sum sum; /* of the calls that made it longer */
	/* Elements: of it now, before the last call, copied by these calls; of all such tensors. */
	uint64_t now, before, copied, ended;
	bool has_grown;
};

/* Waits of the process's first thread, outside of DataLoaders. */
struct host_waits {
	bool are_there; /* some were recorded, in steps or not */
	struct cost_sum of_kind[N_THREAD_WAIT_KINDS];
};

struct host_costs {
	struct cost_sum of[N_HOST_COSTS];
	struct host_waits waits;
	struct busy batches; /* times in which a DataLoader with workers was waited for, in all */
	bool has_backward, has_list_operators; /* has_list_operators: foreach or fused ones */
	bool has_inputs; /* of some operator */
	uint64_t first_node, last_node; /* numbers of autograd's nodes; last_node 0: none */
	uint64_t n_rows, n_indices; /* of the longest embedding's gradient */
	struct growing_tensor *growing;
	size_t n_growing, growing_room;
	struct cost_sum *constants;
	size_t n_constants, constants_room;
	struct backward_pass {
		uint64_t n_nodes, ns;
	} * backward; /* by interval of the scope; NULL: none */
	/* During the pass. */
	struct hash_map known_growing, known_constants;
	size_t n_names;
	uint8_t *cost_of_name; /* by label: cost + 1; 0: not looked up */
};

/* Begin; the process's labels are known. */
void torsh_host_costs_start(struct host_costs *costs, const struct recorded_process *process);

/* Add an operator that ended. */
void torsh_host_costs_add(struct host_costs *costs, const struct time_scope *scope,
			  const struct span *span);

/* Add a thread's wait, in that operator (NULL: in none). */
void torsh_host_costs_wait(struct host_costs *costs, const struct time_scope *scope,
			   const struct recorded_process *process,
			   const struct timeline_event *event, const struct span *innermost);

/* Add a sum to another one. */
void torsh_cost_add(struct cost_sum *to, const struct cost_sum *sum);

/* After the last: keep what repeats, and free what only the pass needs. */
void torsh_host_costs_settle(struct host_costs *costs, const struct time_scope *scope);

/* Free the rest. */
void torsh_host_costs_free(struct host_costs *costs);

#endif
