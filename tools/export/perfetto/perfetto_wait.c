/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Threads that wait for collectives, as slices of their thread. */
#include "tools/export/perfetto/perfetto.h"

#define WAIT_KEY (UINT64_C(3) << 42) /* above the keys of what devices and the collector did */

void torsh_perfetto_put_wait(struct perfetto *perfetto, struct sequence *sequence,
			     const struct timeline_event *event, const struct span *innermost,
			     const struct collective_call *call)
{
	const struct event_collective_wait *wait = &event->event.collective_wait;
	uint64_t track, name, begin_ns = wait->begin, end_ns = wait->begin + wait->duration_ns;
	struct event_bytes bytes;
	bool is_new;

	if (!torsh_trace_has(perfetto->trace, wait->begin))
		return;
	/* Slices of a track have to nest, and the wait's times come from another clock. */
	if (innermost && begin_ns < innermost->start_ns)
		begin_ns = innermost->start_ns;
	end_ns = end_ns < event->at_ns ? end_ns : event->at_ns;
	track = torsh_perfetto_thread_track(perfetto, sequence, event->thread);
	name = torsh_perfetto_made(sequence, WAIT_KEY, &is_new);
	name = torsh_perfetto_made_name(perfetto, sequence, name,
					is_new ? "wait for a collective" : NULL);
	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN, track);
	perfetto_field(&bytes, EVENT_NAME, name);
	perfetto_field(&bytes, EVENT_CATEGORY, CATEGORY_COLLECTIVE_WAIT);
	if (call->sequence != COLLECTIVE_NO_SEQUENCE)
		torsh_perfetto_annotate(&bytes, ANNOTATION_SEQUENCE, ANNOTATION_UINT,
					call->sequence);
	if (call->has_bytes)
		torsh_perfetto_annotate(&bytes, ANNOTATION_IN_BYTES, ANNOTATION_UINT,
					call->in_bytes);
	if (call->has_bytes)
		torsh_perfetto_annotate(&bytes, ANNOTATION_OUT_BYTES, ANNOTATION_UINT,
					call->out_bytes);
	torsh_perfetto_past_event(perfetto, sequence, &bytes, begin_ns);
	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__SLICE_END, track);
	torsh_perfetto_past_event(perfetto, sequence, &bytes,
				  end_ns > begin_ns ? end_ns : begin_ns);
}
