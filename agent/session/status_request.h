/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a process can't read of its own /proc/PID/status, as a filter of system calls may end it for
 * that: the writer reads it from outside when it is requested to. Futexes only.
 */
#ifndef TORSH_AGENT_SESSION_STATUS_REQUEST_H
#define TORSH_AGENT_SESSION_STATUS_REQUEST_H

#include <stdbool.h>

#include "agent/wire/channel.h"

/*
 * Request a look at the highest memory and the filters of the process that the header is of.
 * Returns the request's number.
 */
uint32_t torsh_status_request(struct channel_header *header);

/*
 * Wait for a request's answer, from that process or a fork of it; then has_new_filter is of that
 * look. Waits for at most 50 ms, 2 s for a writer that this process has just started, and not at
 * all while an earlier request is not answered. Returns whether the answer came.
 */
bool torsh_status_await(struct channel_header *header, uint32_t request);

#endif
