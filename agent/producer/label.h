/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Texts that are sent to the writer once: names of code, and labels of timeline events. Any thread,
 * async-signal-safe, lock-free.
 */
#ifndef TORSH_AGENT_PRODUCER_LABEL_H
#define TORSH_AGENT_PRODUCER_LABEL_H

#include <stddef.h>

#include "agent/wire/channel.h"

/* bytes, enough for the names of C++ templates; longer texts are cut, and counted */
#define LABEL_MAX 16384u
/* for a text that is assembled: the extra byte shows that it is cut */
#define LABEL_BUFFER_BYTES (LABEL_MAX + 2u)

/*
 * The piece of the channel's text area that holds these n bytes; its length is 0 when the area is
 * full.
 */
struct channel_text torsh_label_text(const char *bytes, size_t n);

/*
 * The label of these n bytes; 0 for n = 0, or when a table is full. Takes some ten nanoseconds when
 * cached.
 */
uint32_t torsh_label(const char *bytes, size_t n);

#endif
