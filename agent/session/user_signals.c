/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/user_signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

#include "agent/process/agent.h"
#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/channel.h"
#include "agent/session/dormant.h"
#include "shim/libc/next.h"

/* The writer acts on it: a handler may have interrupted a hook. */
static void count(_Atomic uint32_t *n)
{
	atomic_fetch_add_explicit(n, 1, memory_order_release);
	torsh_channel_ring_doorbell(torsh_process->channel.header);
}

static void handle(int number)
{
	int saved = errno;

	if (number == (int)torsh_config.signal &&
	    (torsh_agent_is_dormant() || torsh_agent_has_ended())) {
		torsh_dormant_arm();
	} else if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON &&
		   torsh_process->pid && !torsh_agent_is_borrowed()) {
		struct channel_header *header = torsh_process->channel.header;

		if (number == (int)torsh_config.signal)
			count(&header->switch_signals);
		if (number == (int)torsh_config.keep.signal)
			count(&header->keep_signals);
	}
	errno = saved;
}

static void take(uint32_t number)
{
	const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
	struct sigaction before;
	char text[24] = "";
	struct text digits = TEXT_IN(text);

	if (!number)
		return;
	torsh_text_put_number(&digits, number);
	if (!torsh_next.sigaction((int)number, NULL, &before) &&
	    (before.sa_flags & SA_SIGINFO || before.sa_handler != SIG_DFL))
		torsh_message("signal ", text,
			      " is not taken: it is ignored, or has a handler already", NULL);
	else if (torsh_next.sigaction((int)number, &action, NULL))
		torsh_message("signal ", text, " can't be taken", NULL);
}

void torsh_user_signals_start(void)
{
	take(torsh_config.signal);
	if (torsh_config.keep.signal != torsh_config.signal)
		take(torsh_config.keep.signal);
}
