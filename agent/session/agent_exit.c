/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How the agent's life (agent/process/agent.h) ends: by exit and its relatives, by abort. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/process/agent.h"
#include "agent/process/callbacks.h"
#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/session/dormant.h"
#include "agent/session/exit_wait.h"
#include "agent/session/session.h"
#include "agent/session/status_request.h"

/* Update the filters from the writer: the report states why the rest isn't recorded. */
static void refresh_filters(struct channel_header *header)
{
	torsh_status_await(header, torsh_status_request(header));
	if (atomic_load_explicit(&header->has_new_filter, memory_order_relaxed))
		torsh_agent_forbid();
}

bool torsh_agent_is_sandboxed_now(void)
{
	if (!torsh_agent_is_sandboxed() &&
	    atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON &&
	    torsh_process->pid)
		refresh_filters(torsh_process->channel.header);
	return torsh_agent_is_sandboxed();
}

/* Report on stderr if the writer died; returns whether it did. */
static bool report_if_abandoned(const struct channel_header *header)
{
	uint32_t state = atomic_load_explicit(&header->writer_state, memory_order_acquire);

	if (torsh_agent_is_sandboxed() || !torsh_agent_is_abandoned())
		return false;
	if (state == CHANNEL_WRITER_CLOSED) /* by torsh end, or it has reported the reason */
		return true;
	if (state != CHANNEL_WRITER_NONE)
		torsh_message("the writer was killed: what came after that is not in the recording",
			      NULL);
	else
		torsh_message(
			"nothing is recorded: the writer ended before it was ready; run torsh-writer by hand "
			"to see why",
			NULL);
	torsh_session_remove(torsh_session_socket);
	return 1;
}

void torsh_agent_exiting(int status, uint32_t how)
{
	struct event event = {.id = EVENT_EXIT, .exit = {.status = status, .how = how}};
	struct channel_header *header;
	struct producer *producer;

	torsh_dormant_end();
	if (torsh_agent_is_borrowed() || torsh_agent_is_dormant() || torsh_agent_has_ended())
		return;
	torsh_callbacks.process_ends();
	producer = torsh_producer_enter();
	if (!producer)
		return;
	header = torsh_process->channel.header;
	torsh_producer_event(producer, &event, NULL);
	torsh_producer_leave(producer);
	atomic_store_explicit(&header->exit_status, status, memory_order_relaxed);
	atomic_store_explicit(&header->state, CHANNEL_EXITING, memory_order_release);
	refresh_filters(header);
	/* A forked child leaves the writer to its parent. */
	if (header->forked_from || !report_if_abandoned(header))
		torsh_exit_wait(header, !header->forked_from && torsh_session_has_begun_by(header));
}

void torsh_agent_exit_begins(void)
{
	int saved = errno;

	if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON &&
	    torsh_process->pid && !torsh_agent_is_borrowed())
		torsh_exit_begin_wait(torsh_process->channel.header);
	errno = saved;
}

/*
 * A handler may continue elsewhere. abort itself makes this call in a process that SIGABRT can't
 * end.
 */
static bool is_abort_handled(void)
{
	/*
	 * the kernel's struct, which begins with the handler: 0 (default), 1 (ignored) or a
	 * function
	 */
	uintptr_t action[8] = {0};

	TORSH_SYS(SYS_rt_sigaction, 6 /* SIGABRT */, NULL, action, 8 /* bytes in a signal set */, 0,
		  0);
	return action[0] > 1;
}

void torsh_agent_aborting(void)
{
	int saved = errno;

	if (torsh_config.is_dormant && !is_abort_handled())
		torsh_dormant_end();
	if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON &&
	    torsh_process->pid == 1 && !torsh_agent_is_borrowed() && !is_abort_handled()) {
		torsh_channel_note(&torsh_process->channel,
				   "it aborted as process 1 of its PID namespace");
		torsh_agent_exiting(0, EXIT_BY_ABORT);
	}
	errno = saved;
}
