/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs of Python's garbage collector as slices of their thread. */
#include "tools/export/perfetto/perfetto.h"

#define GC_KEY (UINT64_C(1) << 42) /* above the keys of what devices did */

void torsh_perfetto_put_gc(struct perfetto *perfetto, struct sequence *sequence,
			   const struct timeline_event *event, const struct span *innermost)
{
	const struct event_python_gc *run = &event->event.python_gc;
	uint64_t track, name, stack, begin_ns = run->begin, end_ns = run->begin + run->duration_ns;
	struct event_bytes bytes;
	bool is_new;

	if (!torsh_trace_has(perfetto->trace, run->begin))
		return;
	/* Slices of a track have to nest, and the run's times come from another clock. */
	if (innermost && begin_ns < innermost->start_ns)
		begin_ns = innermost->start_ns;
	end_ns = end_ns < event->at_ns ? end_ns : event->at_ns;
	track = torsh_perfetto_thread_track(perfetto, sequence, event->thread);
	name = torsh_perfetto_made(sequence, GC_KEY | (uint64_t)run->generation << 1, &is_new);
	name = torsh_perfetto_made_name(perfetto, sequence, name,
					is_new ? torsh_trace_gc_name(run) : NULL);
	stack = torsh_perfetto_stack(perfetto, sequence, event->stack);
	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN, track);
	perfetto_field(&bytes, EVENT_NAME, name);
	perfetto_field(&bytes, EVENT_CATEGORY, CATEGORY_COLLECTOR);
	torsh_perfetto_annotate(&bytes, ANNOTATION_COLLECTED, ANNOTATION_UINT, run->collected);
	if (stack)
		torsh_perfetto_annotate(&bytes, ANNOTATION_STACK, ANNOTATION_TEXT, stack);
	torsh_perfetto_past_event(perfetto, sequence, &bytes, begin_ns);
	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__SLICE_END, track);
	torsh_perfetto_past_event(perfetto, sequence, &bytes,
				  end_ns > begin_ns ? end_ns : begin_ns);
}
