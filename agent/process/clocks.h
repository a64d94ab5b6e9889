/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The moment from which a process's times count, by all clocks. */
#ifndef TORSH_AGENT_PROCESS_CLOCKS_H
#define TORSH_AGENT_PROCESS_CLOCKS_H

#include "agent/wire/channel.h"

/*
 * Write the present moment to the channel's start_monotonic_ns, start_realtime_ns and start_ticks:
 * what is stamped by the processor's counter is drawn beside what others tell by the kernel's
 * clocks. Reads the latter where torsh_producer_clock_is_monotonic says so.
 */
void torsh_clocks_read(struct channel_header *header);

#endif
