/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of libraries as slices of their thread. */
#include "tools/export/chrome/chrome.h"
#include "tools/ops/library_flops.h"

static void put_size(struct json_writer *json, const char *name, uint64_t size)
{
	if (size)
		torsh_json_put_u64(json, name, size - 1);
}

void torsh_chrome_put_library_call(struct chrome *chrome, const struct recorded_process *process,
				   const struct timeline_event *event)
{
	const struct event_library_call *given = &event->event.library_call;
	const struct recorded_library_call call = torsh_library_call_of(process, given);
	struct string_cache *strings = &torsh_chrome_process(chrome, process)->strings;
	struct json_writer *json;
	uint64_t flops;

	if (!torsh_trace_has(chrome->trace, given->begin))
		return;
	json = torsh_chrome_begin(chrome, "X", "library_call", "", torsh_library_title(&call),
				  torsh_string_cache_thread(strings, event->thread), given->begin);
	torsh_chrome_put_duration(chrome, given->begin, given->begin + given->duration_ns);
	torsh_json_begin_object(json, "args");
	put_size(json, "m", call.m);
	put_size(json, "n", call.n);
	put_size(json, "k", call.k);
	put_size(json, "batch", call.batch);
	torsh_json_put_text(json, "Type", torsh_library_type(call.type));
	torsh_json_put_text(json, "Library", call.library);
	if (call.shape)
		torsh_json_put_text(json, "Shape", call.shape);
	if (call.details)
		torsh_json_put_text(json, "Details", call.details);
	if (!torsh_library_flops(&call, &flops))
		torsh_json_put_u64(json, "FLOPs", flops);
	torsh_chrome_put_text(json, "Call stack", torsh_string_cache_stack(strings, event->stack));
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}
