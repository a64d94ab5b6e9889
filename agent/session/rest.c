/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/rest.h"

#include <errno.h>

#include "agent/process/agent.h"
#include "agent/process/callbacks.h"
#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/producers.h"
#include "agent/session/dormant.h"
#include "agent/session/session.h"
#include "shim/pause.h"

static void rest(void)
{
	torsh_producers_expire();
	torsh_agent_rest();
}

void torsh_rest_if_ended(void)
{
	int saved = errno, on = AGENT_ON;
	struct producer *self = torsh_producer_self;

	if (!torsh_agent_has_ended() || torsh_agent_is_borrowed() ||
	    !atomic_compare_exchange_strong(&torsh_agent_state, &on, AGENT_STARTING))
		return;
	torsh_producer_self = &torsh_producer_quiet;
	if (torsh_agent_is_sandboxed())
		torsh_agent_turn_off();
	else
		rest();
	torsh_producer_self = self;
	errno = saved;
}

bool torsh_pause_is_of_process(uint32_t kind)
{
	if (kind == PAUSE_ENDED)
		torsh_rest_if_ended();
	return *torsh_pause_pid;
}

/* Until then it reads the channel. */
static bool is_writer_there(const struct channel_header *header)
{
	uint32_t state = atomic_load_explicit(&header->writer_state, memory_order_acquire);

	return state <= CHANNEL_WRITER_ATTACHED && !torsh_agent_is_abandoned();
}

/* A forked child of a process that rests has none of its own. */
static int open_in_child(void)
{
	struct channel parent = torsh_last_channel;
	int result = torsh_agent_open_channel(parent.header ? &parent : NULL);

	if (!result && parent.header)
		torsh_channel_unmap(&parent);
	return result;
}

static int open_again(void)
{
	int result;

	atomic_store_explicit(&torsh_process->schedule.is_announced, 0, memory_order_relaxed);
	atomic_store_explicit(&torsh_process->stuck_at, 0, memory_order_relaxed);
	result = torsh_agent_reopen_channel();
	if (!result)
		torsh_producers_expire();
	return result;
}

/* Returns -EAGAIN if the former writer has not ended. */
static int begin_again(void)
{
	if (!torsh_process->pid)
		return torsh_agent_begin_armed(open_in_child);
	return is_writer_there(torsh_process->channel.header) ? -EAGAIN
							      : torsh_agent_begin_armed(open_again);
}

static void end_rest(void)
{
	int dormant = AGENT_DORMANT, result;
	struct producer *self = torsh_producer_self;

	if (!atomic_compare_exchange_strong(&torsh_agent_state, &dormant, AGENT_STARTING))
		return;
	torsh_producer_self = &torsh_producer_quiet;
	result = begin_again();
	torsh_producer_self = self;
	if (result && result != -EAGAIN)
		torsh_agent_turn_off();
	else
		atomic_store_explicit(&torsh_agent_state, result ? AGENT_DORMANT : AGENT_ON,
				      memory_order_release);
}

void torsh_rest_arm(void)
{
	int saved = errno;

	if (!torsh_agent_has_begun) {
		torsh_agent_arm();
	} else if (torsh_dormant_is_armed()) {
		end_rest();
		if (torsh_agent_is_on())
			torsh_callbacks.armed();
	}
	errno = saved;
}
