/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The status of a process, which a seccomp filter may keep it from reading in /proc/PID/status: the
 * writer reads it on request. Uses only futexes.
 */
#ifndef TORSH_AGENT_SESSION_STATUS_REQUEST_H
#define TORSH_AGENT_SESSION_STATUS_REQUEST_H

#include <stdbool.h>

#include "agent/wire/channel.h"

/*
 * Request the peak memory and the seccomp filters of the header's process. Returns the request's
 * number. Any thread.
 */
uint32_t torsh_status_request(struct channel_header *header);

/*
 * Wait for a request's answer, from that process or a fork of it; has_new_filter is up to date
 * afterwards. Waits at most 50 ms, 2 s for a writer that this process has just started, and not at
 * all while an earlier request is unanswered. Returns whether the answer came.
 */
bool torsh_status_await(struct channel_header *header, uint32_t request);

#endif
