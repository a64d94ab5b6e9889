/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/timeline/prepass/unnested_spans.h. */
#include "tools/timeline/prepass/unnested_spans.h"

#include <stdlib.h>

#include "tools/base/die.h"

struct crossings *torsh_crossings_create(void)
{
	return torsh_need(calloc(1, sizeof(struct crossings)));
}

void torsh_crossings_destroy(struct crossings *crossings)
{
	if (!crossings)
		return;
	for (size_t i = 0; i < crossings->n; i++)
		free(crossings->lists[i].ordinals);
	free(crossings->lists);
	free(crossings);
}

static struct crossing_list *find_list(const struct crossings *crossings, uint32_t process)
{
	for (size_t i = 0; crossings && i < crossings->n; i++) {
		if (crossings->lists[i].process == process)
			return &crossings->lists[i];
	}
	return NULL;
}

const struct crossing_list *torsh_crossings_of(const struct crossings *crossings, uint32_t process)
{
	return find_list(crossings, process);
}

void torsh_crossings_add(struct crossings *crossings, const struct call *call)
{
	struct crossing_list *list = find_list(crossings, call->process->number);

	if (!list) {
		crossings->lists = torsh_need_room(crossings->lists, crossings->n, &crossings->n_room, sizeof(*list));
		list = &crossings->lists[crossings->n++];
		list->process = call->process->number;
	}
	list->ordinals = torsh_need_room(list->ordinals, list->n, &list->n_room, sizeof(*list->ordinals));
	list->ordinals[list->n++] = call->ordinal;
}

static int compare_ordinals(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void torsh_crossings_sort(struct crossings *crossings)
{
	for (size_t i = 0; i < crossings->n; i++)
		qsort(crossings->lists[i].ordinals, crossings->lists[i].n, sizeof(uint64_t), compare_ordinals);
}
