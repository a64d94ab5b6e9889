/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Threads that wait for collectives, as slices with what the collective was. */
#include "tools/export/chrome/chrome.h"

void torsh_chrome_put_wait(struct chrome *chrome, struct string_cache *strings,
			   const struct timeline_event *event, const struct collective_call *call)
{
	const struct event_collective_wait *wait = &event->event.collective_wait;
	struct json_writer *json;

	if (!torsh_trace_has(chrome->trace, wait->begin))
		return;
	json = torsh_chrome_begin(chrome, "X", "collective_wait", "", "wait for a collective",
				  torsh_string_cache_thread(strings, event->thread), wait->begin);
	torsh_chrome_put_duration(chrome, wait->begin, wait->begin + wait->duration_ns);
	torsh_json_begin_object(json, "args");
	if (call->name)
		torsh_json_put_text_n(json, "Collective name", call->name, call->n_name);
	torsh_json_put_text(json, "Process Group Name", call->group);
	torsh_json_put_known(json, "Seq", call->sequence != COLLECTIVE_NO_SEQUENCE, call->sequence);
	torsh_json_put_known(json, "In bytes", call->has_bytes, call->in_bytes);
	torsh_json_put_known(json, "Out bytes", call->has_bytes, call->out_bytes);
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}
