/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Collectives that several ranks in the file had, on rows of their own: arrows go through the
 * slices of one collective, in the order in which the ranks entered it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tools/export/chrome/chrome.h"

#define CALLS_TID_BASE 0x50000000u /* of the first row: above all threads and rows of steps */

/* Beside the numbers of other arrows, and exact in every reader. */
#define FLOW_OF_CALL (UINT64_C(1) << 48)

static void put_slice(struct chrome *chrome, const struct trace_call *call, const char *thread)
{
	struct json_writer *json = &chrome->json;

	torsh_chrome_begin(chrome, "X", "collective", "", call->name, thread, call->begin_ns);
	torsh_chrome_put_duration(chrome, call->begin_ns, call->end_ns);
	torsh_json_begin_object(json, "args");
	torsh_json_put_u64(json, "Seq", call->sequence);
	torsh_json_put_text(json, "Process Group", call->group);
	torsh_json_put_u64(json, "Bytes", call->bytes);
	torsh_json_put_u64(json, "Clock error (ns)", call->error_ns);
	torsh_json_end_object(json);
	torsh_json_end_object(json);
}

static void put_arrow(struct chrome *chrome, const struct trace_call *call, const char *thread)
{
	const char *phase = call->is_first ? "s" : call->is_last ? "f" : "t";
	struct json_writer *json =
		torsh_chrome_begin(chrome, phase, "ranks", "", "ranks", thread, call->begin_ns);

	torsh_json_put_u64(json, "id", FLOW_OF_CALL | call->flow);
	torsh_json_end_object(json);
}

void torsh_chrome_put_calls(struct chrome *chrome, const struct recorded_process *process)
{
	const struct trace_merge *merge = chrome->trace->merge;
	uint32_t n_lanes = 0;

	for (size_t i = 0; i < merge->n_calls; i++) {
		const struct trace_call *call = &merge->calls[i];
		uint32_t tid = CALLS_TID_BASE + call->lane;
		char thread[64];

		for (; n_lanes <= call->lane; n_lanes++)
			torsh_chrome_put_text_of(&chrome->json, "thread_name", process->pid,
						 CALLS_TID_BASE + n_lanes, "name",
						 "collectives of ranks");
		snprintf(thread, sizeof(thread), "\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
			 process->pid, tid);
		put_slice(chrome, call, thread);
		put_arrow(chrome, call, thread);
	}
}
