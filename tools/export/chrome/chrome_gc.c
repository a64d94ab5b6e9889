/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs of Python's garbage collector as slices of their thread. */
#include "tools/export/chrome/chrome.h"

void torsh_chrome_put_gc(struct chrome *chrome, struct string_cache *strings,
			 const struct timeline_event *event)
{
	const struct event_python_gc *run = &event->event.python_gc;
	struct json_writer *json;

	if (!torsh_trace_has(chrome->trace, run->begin))
		return;
	json = torsh_chrome_begin(chrome, "X", "python_gc", "", torsh_trace_gc_name(run),
				  torsh_string_cache_thread(strings, event->thread), run->begin);
	torsh_chrome_put_duration(chrome, run->begin, run->begin + run->duration_ns);
	torsh_json_begin_object(json, "args");
	torsh_json_put_u64(json, "Generation", run->generation);
	torsh_json_put_u64(json, "Collected", run->collected);
	torsh_json_put_u64(json, "Uncollectable", run->uncollectable);
	torsh_chrome_put_text(json, "Call stack", torsh_string_cache_stack(strings, event->stack));
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}
