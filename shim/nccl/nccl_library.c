/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The loaded library: its functions that the agent calls, and whether it reports to the agent. */
#include <link.h>
#include <stdatomic.h>

#include "shim/loader/objects.h"
#include "shim/nccl/nccl_api.h"

#define N_REPORTERS 8u /* libraries of NCCL's in one process */

static const struct link_map *_Atomic reporters[N_REPORTERS];
static void *_Atomic next_count, *_Atomic next_rank;

bool torsh_nccl_library_find(void)
{
	if (!next_count)
		next_count = torsh_objects_find("ncclCommCount");
	if (!next_rank)
		next_rank = torsh_objects_find("ncclCommUserRank");
	return next_count && next_rank;
}

bool torsh_nccl_library_is_found(void)
{
	return next_count && next_rank;
}

bool torsh_nccl_api_describe(const void *comm, int *rank, int *n_ranks)
{
	int (*count)(const void *, int *), (*user_rank)(const void *, int *);

	*(void **)&count = next_count;
	*(void **)&user_rank = next_rank;
	return comm && count && user_rank && count(comm, n_ranks) == NCCL_SUCCESS &&
	       user_rank(comm, rank) == NCCL_SUCCESS;
}

void torsh_nccl_add_reporter(const void *code)
{
	const struct link_map *map = torsh_objects_of(code);

	for (uint32_t i = 0; map && i < N_REPORTERS; i++) {
		const struct link_map *there = NULL;

		if (atomic_compare_exchange_strong(&reporters[i], &there, map) || there == map)
			return;
	}
}

bool torsh_nccl_api_is_reported(void)
{
	bool has_reporter = atomic_load_explicit(&reporters[0], memory_order_relaxed) != NULL;
	/* By the library itself: the next definition of a call may be another tool's. */
	const struct link_map *map = has_reporter ? torsh_objects_of(next_count) : NULL;

	for (uint32_t i = 0; map && i < N_REPORTERS; i++)
		if (atomic_load_explicit(&reporters[i], memory_order_relaxed) == map)
			return true;
	return false;
}
