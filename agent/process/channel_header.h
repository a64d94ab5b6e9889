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

/* Add these notes, and count what is left out, in the channel of another recording. */
void torsh_channel_header_note(struct channel *channel);

/*
 * Prepare the header and the slots for another writer, after the former one has ended, as if none
 * had been there: tables and text stay. Slots in use are open to it once their owners open them.
 */
void torsh_channel_header_reuse(struct channel *channel);

#endif
