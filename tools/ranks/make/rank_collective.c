/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/rank_collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define GROUP_TEXT_BYTES 256
#define GROUP_RANKS_SHOWN 80 /* characters */

size_t torsh_rank_collectives_add(struct rank_collectives *all,
				  const struct rank_collective *collective)
{
	size_t n_group = strlen(collective->group) + 1, sequence = 0;
	struct rank_collective *added;

	torsh_hash_map_remove(&all->sequences, collective->group, n_group, &sequence);
	torsh_hash_map_put(&all->sequences, collective->group, n_group, sequence + 1);
	all->items = torsh_array_reserve(all->items, all->n, &all->n_room, sizeof(*all->items));
	added = &all->items[all->n];
	*added = *collective;
	if (!added->has_sequence)
		added->sequence = sequence;
	return all->n++;
}

const char *torsh_rank_collectives_text(struct rank_collectives *all, const char *text, size_t n)
{
	char *copy = torsh_need(strndup(text, n));
	const char *kept = torsh_hash_map_put_text(&all->texts, copy, 0)->key;

	free(copy);
	return kept;
}

const char *torsh_rank_collectives_group(struct rank_collectives *all,
					 const struct process_group *group)
{
	char text[GROUP_TEXT_BYTES];
	int n = snprintf(text, sizeof(text), "%.128s of %" PRIu32 " ranks: %.*s",
			 group->name ? group->name : "?", group->n_ranks, GROUP_RANKS_SHOWN,
			 group->ranks ? group->ranks : "?");

	return torsh_rank_collectives_text(all, text, n < 0 ? 0 : (size_t)n);
}

bool torsh_collective_joins(const char *name)
{
	static const char *const joining[] = {
		"allreduce",	      "allgather",	    "_allgather",    "reduce_scatter",
		"_reduce_scatter",    "alltoall",	    "barrier",	     "monitored_barrier",
		"MPI_Allreduce",      "MPI_Iallreduce",	    "MPI_Allgather", "MPI_Iallgather",
		"MPI_Alltoall",	      "MPI_Ialltoall",	    "MPI_Barrier",   "MPI_Ibarrier",
		"MPI_Reduce_scatter", "MPI_Ireduce_scatter"};

	for (size_t i = 0; i < sizeof(joining) / sizeof(*joining); i++) {
		if (strncmp(name, joining[i], strlen(joining[i])) == 0)
			return true;
	}
	return false;
}

void torsh_rank_collectives_free(struct rank_collectives *all)
{
	free(all->items);
	torsh_hash_map_free(&all->texts);
	torsh_hash_map_free(&all->sequences);
	*all = (struct rank_collectives){0};
}
