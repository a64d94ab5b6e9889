/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls whose begin and end don't nest: what one walk found of them (tools/timeline/spans.c), for the next. */
#ifndef TORSH_PROFILE_CROSSINGS_H
#define TORSH_PROFILE_CROSSINGS_H

#include "tools/timeline/spans.h"

/* Ordinals of one process's calls. */
struct crossing_list {
	uint32_t process;
	uint64_t *ordinals;
	size_t n, n_room;
};

struct crossings {
	struct crossing_list *lists;
	size_t n, n_room;
};

/* Those of a process by its number, or NULL; crossings may be NULL. */
const struct crossing_list *torsh_crossings_of(const struct crossings *crossings, uint32_t process);

void torsh_crossings_add(struct crossings *crossings, const struct call *call);

/* Into the order of ordinals: when all were added. */
void torsh_crossings_sort(struct crossings *crossings);

#endif
