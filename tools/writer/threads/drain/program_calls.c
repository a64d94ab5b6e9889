/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain/program_calls.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t verb_of(uint32_t call)
{
	return call == CALL_PAUSE    ? REQUEST_PAUSE
	       : call == CALL_RESUME ? REQUEST_RESUME
				     : REQUEST_PROGRAM_CALL;
}

bool torsh_program_call_take(struct target *target, struct program_call *call)
{
	struct channel_header *header = target->view.header;
	/* Pairs with the release in agent/session/writer_call.c: verb and window belong to it. */
	uint32_t number = atomic_load_explicit(&header->calls, memory_order_acquire);

	/* One at a time: a process that stores more than that is not served faster. */
	if (number == target->n_calls_taken || target->is_calling)
		return false;
	target->n_calls_taken = number;
	target->is_calling = true;
	*call = (struct program_call){
		.target = target->number,
		.number = number,
		.verb = atomic_load_explicit(&header->call_verb, memory_order_relaxed),
		.window = atomic_load_explicit(&header->call_window, memory_order_relaxed),
	};
	return true;
}

struct queued_request *torsh_program_call_queue(const struct program_call *call)
{
	const struct request request = {.verb = verb_of(call->verb)};
	struct queued_request *queued = torsh_queued_request_create(&request, NULL);

	queued->call = *call;
	return queued;
}

void torsh_program_call_reply(struct target *target, const struct program_call *call, int result)
{
	struct channel_header *header = target->view.header;

	target->is_calling = false;
	atomic_store_explicit(&header->call_result, result, memory_order_relaxed);
	/* Pairs with the acquire in agent/session/writer_call.c. */
	atomic_store_explicit(&header->call_answers, call->number, memory_order_release);
	syscall(SYS_futex, &header->call_answers, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void torsh_program_call_answer(struct target *target, const struct program_call *call)
{
	struct channel_memory memory = {0};
	int result = torsh_memory_windows_call(&target->windows, &target->state.heap.tracker,
					       call->verb, call->window, &memory);

	if (!result && call->verb == CALL_MEMORY_BEGIN && call->window == CALL_WITH_SITES)
		torsh_window_peaks_begin(&target->state.heap, memory.window,
					 target->state.last_stamp);
	if (!result && call->verb == CALL_MEMORY_END)
		torsh_window_peaks_end(&target->state.heap, call->window);
	target->view.header->call_memory = memory;
	torsh_program_call_reply(target, call, result);
}
