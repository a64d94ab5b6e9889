/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The timelines of a recording's processes, event by event, because they are too large for memory.
 */
#ifndef TORSH_RECORDING_TIMELINE_H
#define TORSH_RECORDING_TIMELINE_H

#include "tools/recording/recording.h"
#include "tools/store/timeline_columns.h"

/* Returns 0 to continue; any other value ends the pass. */
typedef int timeline_visit(void *context, const struct recorded_process *process,
			   const struct timeline_event *event);

/*
 * Call visit for each event in the recording's file. Events of one process are in time order;
 * processes alternate, with many events at a time. Returns 0, what visit returned, or -errno.
 * Damage is reported on stderr and skipped.
 */
int torsh_timeline_visit(const struct recording *recording, timeline_visit *visit, void *context);

/*
 * Whether the event describes the process or its interpreter: alone it is no timeline of what the
 * program did.
 */
static inline bool torsh_timeline_is_background(const struct event *event)
{
	return event->id == EVENT_FACT || event->id == EVENT_PYTHON_GC ||
	       event->id == EVENT_OP_READ || event->id == EVENT_THREAD_WAIT ||
	       event->id == EVENT_CPU_SAMPLE || event->id == EVENT_CPU_SAMPLER ||
	       event->id == EVENT_CPU_COUNTER_MODE || event->id == EVENT_CPU_COUNTS ||
	       event->id == EVENT_CPU_HARDWARE_COUNTS;
}

/* Returns the text of an event's label; NULL: none. */
const char *torsh_timeline_label(const struct recorded_process *process, uint32_t label);

#endif
