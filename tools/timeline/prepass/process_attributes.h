/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Process attributes: named values that hold for a whole run, such as versions and folders. See
 * `fact` in agent/wire/events.def.
 */
#ifndef TORSH_TIMELINE_PREPASS_PROCESS_ATTRIBUTES_H
#define TORSH_TIMELINE_PREPASS_PROCESS_ATTRIBUTES_H

#include "tools/recording/timeline.h"

#define FACTS_MAX 16u /* further ones are ignored: the file is untrusted */

struct process_attributes {
	struct {
		const char *name, *value; /* the process's texts */
	} items[FACTS_MAX];
	size_t n;
};

/* Pass any event. */
void torsh_process_attributes_add(struct process_attributes *facts,
				  const struct recorded_process *process,
				  const struct event *event);

/* Returns the value; NULL: not recorded. */
const char *torsh_process_attributes_find(const struct process_attributes *facts, const char *name);

#endif
