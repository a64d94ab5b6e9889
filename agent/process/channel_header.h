/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Fills the header of a process's channel: what the process is, and which clock stamps its events.
 */
#ifndef TORSH_AGENT_PROCESS_CHANNEL_HEADER_H
#define TORSH_AGENT_PROCESS_CHANNEL_HEADER_H

#include "agent/producer/channel.h"

/*
 * Set torsh_producer_clock_is_monotonic: the time stamp counter is used only if it is invariant, as
 * the kernel's own choice of clock source shows.
 */
void torsh_channel_header_choose_clock(void);

/* Fill the numbers of a new channel's header, of a forked child's too. Uses little stack. */
void torsh_channel_header_fill(struct channel_header *header);

/* Add the texts of a process that was not forked (program, arguments, rank), and notes. */
void torsh_channel_header_describe(struct channel *channel);

#endif
