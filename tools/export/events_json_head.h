/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the export "json" has once: the session, its processes and its steps. */
#ifndef TORSH_EXPORT_EVENTS_JSON_HEAD_H
#define TORSH_EXPORT_EVENTS_JSON_HEAD_H

#include "tools/export/trace.h"

/* Put the first members of the document. */
void torsh_events_put_head(struct json_writer *json, const struct trace *trace);

#endif
