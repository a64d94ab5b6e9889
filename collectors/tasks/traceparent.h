/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The header traceparent of W3C's Trace Context, level 1: 00-TRACE-SPAN-FLAGS in hexadecimal. */
#ifndef TORSH_COLLECTORS_TASKS_TRACEPARENT_H
#define TORSH_COLLECTORS_TASKS_TRACEPARENT_H

#include <stddef.h>

#include "agent/wire/event.h"

/* Set the trace and the span of the event; nothing if the text is no valid value of the header. */
void torsh_traceparent_read(const char *text, size_t n, struct event_task *task);

#endif
