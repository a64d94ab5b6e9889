/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a process reported that holds for all of its run, by name: versions, folders. See `fact` in
 * agent/wire/events.def.
 */
#ifndef TORSH_TIMELINE_PREPASS_PROCESS_ATTRIBUTES_H
#define TORSH_TIMELINE_PREPASS_PROCESS_ATTRIBUTES_H

#include "tools/recording/timeline.h"

#define FACTS_MAX 16u /* more are not kept: anybody may have written the file */

struct process_attributes {
	struct {
		const char *name, *value; /* the process's texts */
	} items[FACTS_MAX];
	size_t n;
};

/* Take an event, whatever it is. */
void torsh_process_attributes_add(struct process_attributes *facts,
				  const struct recorded_process *process,
				  const struct event *event);

/* The value, or NULL: it was not recorded. */
const char *torsh_process_attributes_find(const struct process_attributes *facts, const char *name);

#endif
