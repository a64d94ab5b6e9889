/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a process said that holds for all of its run, by name: versions, folders. See `fact` in agent/wire/events.def. */
#ifndef TORSH_PROFILE_FACTS_H
#define TORSH_PROFILE_FACTS_H

#include "tools/recording/timeline.h"

#define FACTS_MAX 16u /* more are not kept: anybody may have written the file */

struct facts {
	struct {
		const char *name, *value; /* the process's texts */
	} items[FACTS_MAX];
	size_t n;
};

/* Take an event, whatever it is. */
void torsh_facts_add(struct facts *facts, const struct profile_process *process, const struct event *event);

/* The value, or NULL: it was not told. */
const char *torsh_facts_find(const struct facts *facts, const char *name);

#endif
