/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of libraries as slices of their thread. */
#include "tools/export/perfetto/perfetto.h"
#include "tools/ops/library_flops.h"

static void annotate_size(struct event_bytes *bytes, enum annotation annotation, uint64_t size)
{
	if (size)
		torsh_perfetto_annotate(bytes, annotation, ANNOTATION_UINT, size - 1);
}

static void annotate(struct event_bytes *bytes, const struct recorded_library_call *call)
{
	uint64_t flops;

	annotate_size(bytes, ANNOTATION_M, call->m);
	annotate_size(bytes, ANNOTATION_N, call->n);
	annotate_size(bytes, ANNOTATION_K, call->k);
	annotate_size(bytes, ANNOTATION_BATCH, call->batch);
	if (!torsh_library_flops(call, &flops))
		torsh_perfetto_annotate(bytes, ANNOTATION_FLOPS, ANNOTATION_UINT, flops);
}

void torsh_perfetto_put_library_call(struct perfetto *perfetto,
				     const struct recorded_process *process,
				     const struct timeline_event *event,
				     const struct span *innermost)
{
	const struct event_library_call *given = &event->event.library_call;
	const struct recorded_library_call call = torsh_library_call_of(process, given);
	struct sequence *sequence = torsh_perfetto_sequence(perfetto, process);
	uint64_t track, stack, begin_ns = given->begin, end_ns = given->begin + given->duration_ns;
	struct event_bytes bytes;

	if (!torsh_trace_has(perfetto->trace, given->begin))
		return;
	/* Slices of a track have to nest, and the call's times come from another clock. */
	if (innermost && begin_ns < innermost->start_ns)
		begin_ns = innermost->start_ns;
	end_ns = end_ns < event->at_ns ? end_ns : event->at_ns;
	track = torsh_perfetto_thread_track(perfetto, sequence, event->thread);
	stack = torsh_perfetto_stack(perfetto, sequence, event->stack);
	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN, track);
	perfetto_field(&bytes, EVENT_NAME,
		       torsh_perfetto_name(perfetto, sequence,
					   torsh_library_is_primitive(&call) ? given->routine
									     : given->name));
	perfetto_field(&bytes, EVENT_CATEGORY, CATEGORY_LIBRARY);
	annotate(&bytes, &call);
	if (stack)
		torsh_perfetto_annotate(&bytes, ANNOTATION_STACK, ANNOTATION_TEXT, stack);
	torsh_perfetto_past_event(perfetto, sequence, &bytes, begin_ns);
	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__SLICE_END, track);
	torsh_perfetto_past_event(perfetto, sequence, &bytes,
				  end_ns > begin_ns ? end_ns : begin_ns);
}
