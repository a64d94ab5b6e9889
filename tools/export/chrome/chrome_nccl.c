/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What NCCL reported, as asynchronous events: its calls end when their work has been handed over,
 * and its proxy's thread does many things at once.
 */
#include <inttypes.h>

#include "tools/export/chrome/chrome.h"

static void put_args(struct chrome *chrome, const struct nccl_span *span)
{
	const struct nccl_communicator *communicator =
		torsh_nccl_communicator(&chrome->nccl, span->process, span->communicator);
	struct json_writer *json = &chrome->json;

	torsh_json_begin_object(json, "args");
	torsh_json_put_text(json, "Kind", torsh_nccl_kind_names[span->kind]);
	torsh_json_put_u64(json, "Number", span->number);
	torsh_json_put_known(json, "Part of", span->parent, span->parent);
	if (communicator) {
		torsh_json_put_format(json, "Communicator", "%016" PRIx64,
				      communicator->event.hash);
		torsh_json_put_text(json, "Communicator name", communicator->name);
		torsh_json_put_text(json, "Source", torsh_nccl_source_name(communicator));
		torsh_json_put_known(json, "Rank", communicator->event.rank,
				     communicator->event.rank - 1);
	}
	if (span->function) {
		torsh_json_put_text(json, "dtype", span->datatype);
		torsh_json_put_u64(json, "Elements", span->count);
		torsh_json_put_known(json, "Seq", span->sequence != COLLECTIVE_NO_SEQUENCE,
				     span->sequence);
		torsh_json_put_known(json, "Peer", span->peer, span->peer - 1);
	}
	if (span->algorithm) {
		torsh_json_put_text(json, "Algorithm", span->algorithm);
		torsh_json_put_text(json, "Protocol", span->protocol);
		torsh_json_put_u64(json, "Channels", span->channels);
	}
	if (span->has_bytes)
		torsh_json_put_u64(json, "Bytes", span->bytes);
	if (span->has_channel)
		torsh_json_put_u64(json, "Channel", span->channel);
	if (span->device_start_ns && span->device_end_ns >= span->device_start_ns)
		torsh_json_put_u64(json, "Device ns", span->device_end_ns - span->device_start_ns);
	torsh_json_end_object(json);
}

static void put_id(struct json_writer *json, const struct nccl_span *span)
{
	torsh_json_put_format(json, "id", "nccl.%" PRIu32 ".%" PRIu64, span->process->number,
			      span->number);
}

static void put_span(struct chrome *chrome, const struct nccl_span *span)
{
	struct string_cache *strings = &torsh_chrome_process(chrome, span->process)->strings;
	const char *thread = torsh_string_cache_thread(strings, span->thread),
		   *name = torsh_nccl_span_name(span);
	struct json_writer *json;

	if (!torsh_trace_has(chrome->trace, span->start_ns))
		return;
	json = torsh_chrome_begin(chrome, "b", "nccl", "", name, thread, span->start_ns);
	put_id(json, span);
	put_args(chrome, span);
	torsh_json_end_object(json);
	torsh_chrome_begin(chrome, "e", "nccl", "", name, thread, span->end_ns);
	put_id(json, span);
	torsh_json_end_object(json);
}

void torsh_chrome_see_nccl(struct chrome *chrome, const struct recorded_process *process,
			   const struct timeline_event *event)
{
	bool is_end;
	const struct nccl_span *span = torsh_nccl_spans_see(&chrome->nccl, process, event, &is_end);

	if (span && is_end)
		put_span(chrome, span);
}

void torsh_chrome_end_nccl(struct chrome *chrome)
{
	const struct nccl_span *span;

	while ((span = torsh_nccl_spans_cut(&chrome->nccl)))
		put_span(chrome, span);
	torsh_nccl_spans_free(&chrome->nccl);
}
