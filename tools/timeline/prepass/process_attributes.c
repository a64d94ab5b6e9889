/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/prepass/process_attributes.h"

#include <string.h>

void torsh_process_attributes_add(struct process_attributes *facts,
				  const struct recorded_process *process, const struct event *event)
{
	const char *name, *value;

	if (event->id != EVENT_FACT || facts->n == FACTS_MAX)
		return;
	name = torsh_timeline_label(process, event->fact.name);
	value = torsh_timeline_label(process, event->fact.value);
	if (!name || !value || torsh_process_attributes_find(facts, name))
		return;
	facts->items[facts->n].name = name;
	facts->items[facts->n++].value = value;
}

const char *torsh_process_attributes_find(const struct process_attributes *facts, const char *name)
{
	for (size_t i = 0; i < facts->n; i++) {
		if (strcmp(facts->items[i].name, name) == 0)
			return facts->items[i].value;
	}
	return NULL;
}
