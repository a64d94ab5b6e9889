/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What NCCL reported, as slices of asynchronous tracks. */
#include "tools/export/perfetto/perfetto.h"

#define NCCL_KEY (UINT64_C(5) << 42) /* above the keys of waits; names of works, by kind */

static uint64_t name_of(struct perfetto *perfetto, struct sequence *sequence,
			const struct nccl_span *span, const struct event *event)
{
	uint64_t name;
	bool is_new;

	if (span->function)
		return torsh_perfetto_name(perfetto, sequence, event->nccl_call.function);
	name = torsh_perfetto_made(sequence, NCCL_KEY | (uint64_t)span->kind << 1, &is_new);
	return torsh_perfetto_made_name(perfetto, sequence, name,
					is_new ? torsh_nccl_kind_names[span->kind] : NULL);
}

static void begin(struct perfetto *perfetto, struct sequence *sequence, struct nccl_span *span,
		  const struct timeline_event *event)
{
	uint64_t name = name_of(perfetto, sequence, span, &event->event), texts[2] = {0};
	struct event_bytes bytes;

	span->own = torsh_perfetto_take_async(perfetto, sequence);
	if (span->algorithm && span->protocol) {
		texts[0] =
			torsh_perfetto_text(perfetto, sequence, event->event.nccl_call.algorithm);
		texts[1] = torsh_perfetto_text(perfetto, sequence, event->event.nccl_call.protocol);
	}
	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN, span->own);
	perfetto_field(&bytes, EVENT_NAME, name);
	perfetto_field(&bytes, EVENT_CATEGORY, CATEGORY_NCCL);
	if (span->sequence != COLLECTIVE_NO_SEQUENCE)
		torsh_perfetto_annotate(&bytes, ANNOTATION_SEQUENCE, ANNOTATION_UINT,
					span->sequence);
	if (span->has_bytes)
		torsh_perfetto_annotate(&bytes, ANNOTATION_BYTES, ANNOTATION_UINT, span->bytes);
	if (texts[0]) {
		torsh_perfetto_annotate(&bytes, ANNOTATION_ALGORITHM, ANNOTATION_TEXT, texts[0]);
		torsh_perfetto_annotate(&bytes, ANNOTATION_PROTOCOL, ANNOTATION_TEXT, texts[1]);
	}
	if (span->has_channel)
		torsh_perfetto_annotate(&bytes, ANNOTATION_CHANNEL, ANNOTATION_UINT, span->channel);
	torsh_perfetto_event(perfetto, sequence, &bytes, span->start_ns);
}

static void end(struct perfetto *perfetto, struct sequence *sequence, const struct nccl_span *span)
{
	struct event_bytes bytes;

	perfetto_start(&bytes, PERFETTO__TRACK_EVENT__TYPE__SLICE_END, span->own);
	if (span->is_cut)
		torsh_perfetto_annotate(&bytes, ANNOTATION_CUT, ANNOTATION_UINT, 1);
	torsh_perfetto_event(perfetto, sequence, &bytes, span->end_ns);
	torsh_perfetto_free_async(sequence, span->own);
}

void torsh_perfetto_see_nccl(struct perfetto *perfetto, struct sequence *sequence,
			     const struct timeline_event *event)
{
	bool is_end;
	struct nccl_span *span =
		torsh_nccl_spans_see(&perfetto->nccl, sequence->process, event, &is_end);

	if (span && is_end && span->own)
		end(perfetto, sequence, span);
	else if (span && !is_end && torsh_trace_has(perfetto->trace, span->start_ns))
		begin(perfetto, sequence, span, event);
}

void torsh_perfetto_end_nccl(struct perfetto *perfetto)
{
	const struct nccl_span *span;

	while ((span = torsh_nccl_spans_cut(&perfetto->nccl)))
		if (span->own)
			end(perfetto, torsh_perfetto_sequence(perfetto, span->process), span);
	torsh_nccl_spans_free(&perfetto->nccl);
}
