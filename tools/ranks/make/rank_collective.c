/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/rank_collective.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

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

bool torsh_collective_joins(const char *name)
{
	static const char *const joining[] = {"allreduce",	"allgather",	    "_allgather",
					      "reduce_scatter", "_reduce_scatter",  "alltoall",
					      "barrier",	"monitored_barrier"};

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
