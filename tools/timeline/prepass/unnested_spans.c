/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/prepass/unnested_spans.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

struct unnested_spans *torsh_unnested_spans_create(void)
{
	return torsh_need(calloc(1, sizeof(struct unnested_spans)));
}

void torsh_unnested_spans_destroy(struct unnested_spans *unnested)
{
	if (!unnested)
		return;
	for (size_t i = 0; i < unnested->n; i++)
		free(unnested->lists[i].ordinals);
	free(unnested->lists);
	free(unnested);
}

static struct unnested_list *find_list(const struct unnested_spans *unnested, uint32_t process)
{
	for (size_t i = 0; unnested && i < unnested->n; i++) {
		if (unnested->lists[i].process == process)
			return &unnested->lists[i];
	}
	return NULL;
}

const struct unnested_list *torsh_unnested_spans_of(const struct unnested_spans *unnested,
						    uint32_t process)
{
	return find_list(unnested, process);
}

void torsh_unnested_spans_add(struct unnested_spans *unnested, const struct span *span)
{
	struct unnested_list *list = find_list(unnested, span->process->number);

	if (!list) {
		unnested->lists = torsh_array_reserve(unnested->lists, unnested->n,
						      &unnested->n_room, sizeof(*list));
		list = &unnested->lists[unnested->n++];
		list->process = span->process->number;
	}
	list->ordinals = torsh_array_reserve(list->ordinals, list->n, &list->n_room,
					     sizeof(*list->ordinals));
	list->ordinals[list->n++] = span->ordinal;
}

static int compare_ordinals(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void torsh_unnested_spans_sort(struct unnested_spans *unnested)
{
	for (size_t i = 0; i < unnested->n; i++)
		qsort(unnested->lists[i].ordinals, unnested->lists[i].n, sizeof(uint64_t),
		      compare_ordinals);
}
