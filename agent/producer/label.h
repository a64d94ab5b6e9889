/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Texts that are sent to the writer once: names of code, and labels of the timeline's events. Any
 * thread, also in a signal handler; no locks.
 */
#ifndef TORSH_AGENT_PRODUCER_LABEL_H
#define TORSH_AGENT_PRODUCER_LABEL_H

#include <stddef.h>

#include "agent/wire/channel.h"

/* bytes; what is longer is cut, which is counted: long enough for what templates are called */
#define LABEL_MAX 16384u
/* for a text that is put together: one byte too many shows that it is cut */
#define LABEL_BUFFER_BYTES (LABEL_MAX + 2u)

/* The piece of the channel's text area that holds these n bytes; length 0 when it is full. */
struct channel_text torsh_label_text(const char *bytes, size_t n);

/*
 * The label of these n bytes; 0 for n = 0, or when a table is full. Some ten nanoseconds when
 * cached.
 */
uint32_t torsh_label(const char *bytes, size_t n);

#endif
