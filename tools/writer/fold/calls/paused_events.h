/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Timeline events that a pause leaves out. Device work, waits and runs of a garbage collector
 * belong to the pause in which they began. Ranges that any thread may end, blocks of devices and
 * tensors belong to the pause in which they came into being: their ends are left out too, whenever
 * they come. Calls that end on their own thread are left out by the agent.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_PAUSED_EVENTS_H
#define TORSH_WRITER_FOLD_TABLES_PAUSED_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/event.h"
#include "tools/base/containers/hash_map.h"

/* Starts zeroed. */
struct paused_events {
	struct hash_map begun; /* in a pause, and not ended yet */
};

/*
 * Returns true if the event reports afterwards what began at *begin_ns, which is in the unit of the
 * event's moments.
 */
bool torsh_paused_events_begin_ns(const struct event *event, uint64_t *begin_ns);

/*
 * Take another event, in order of time. Returns true if it is left out: it began in a pause, or it
 * ends what did.
 */
bool torsh_paused_events_take(struct paused_events *paused, const struct event *event,
			      bool is_paused);

/* Free the table. */
void torsh_paused_events_destroy(struct paused_events *paused);

#endif
