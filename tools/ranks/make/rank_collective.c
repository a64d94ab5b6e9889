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
#define FIRST_MESSAGE (UINT64_C(1) << 40) /* sequences of messages: above those of collectives */

/* The number of earlier ones of the group: messages, or collectives. */
static uint64_t count_of_group(struct rank_collectives *all, const char *group, bool is_message)
{
	char key[GROUP_TEXT_BYTES + 2];
	int n = snprintf(key, sizeof(key), "%c%s", is_message ? 'm' : 'c', group);
	size_t n_key = n < (int)sizeof(key) ? (size_t)n : sizeof(key) - 1, count = 0;

	torsh_hash_map_remove(&all->sequences, key, n_key, &count);
	torsh_hash_map_put(&all->sequences, key, n_key, count + 1);
	return count;
}

size_t torsh_rank_collectives_add(struct rank_collectives *all,
				  const struct rank_collective *collective)
{
	uint64_t sequence = count_of_group(all, collective->group, collective->is_message);
	struct rank_collective *added;

	all->items = torsh_array_reserve(all->items, all->n, &all->n_room, sizeof(*all->items));
	added = &all->items[all->n];
	*added = *collective;
	if (!added->has_sequence)
		added->sequence = sequence | (added->is_message ? FIRST_MESSAGE : 0);
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
