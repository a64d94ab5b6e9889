/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The origin of a process's time stamps, on every clock. */
#ifndef TORSH_AGENT_PROCESS_CLOCKS_H
#define TORSH_AGENT_PROCESS_CLOCKS_H

#include "agent/wire/channel.h"

/*
 * Store the current time in the channel's start_monotonic_ns, start_realtime_ns and start_ticks,
 * which relate the time stamp counter to the kernel's clocks. start_ticks is CLOCK_MONOTONIC if
 * torsh_producer_clock_is_monotonic.
 */
void torsh_clocks_read(struct channel_header *header);

#endif
