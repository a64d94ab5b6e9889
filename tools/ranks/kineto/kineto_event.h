/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* An event of a trace, while it is read. */
#ifndef TORSH_RANKS_KINETO_KINETO_EVENT_H
#define TORSH_RANKS_KINETO_KINETO_EVENT_H

#include "tools/base/json_reader.h"
#include "tools/ranks/kineto/kineto.h"

/* A growing text, terminated. */
struct event_text {
	char *text;
	size_t n, room;
};

struct kineto_event {
	bool has_start, has_dur, has_category, has_fraction;
	double start_us, dur_us;
	int64_t stream, correlation;
	struct event_text name, category;
	/* Of a collective; texts are empty and numbers -1 where it has none. */
	struct event_text collective, group, group_ranks, type;
	double n_in, n_out, group_size, sequence;
};

/* Read the event that comes next. Returns false at a fault. */
bool torsh_kineto_event_read(struct json_reader *json, struct kineto_event *event);

/* Free its texts. */
void torsh_kineto_event_free(struct kineto_event *event);

/* Add what an event says of a collective, if it is a kernel of NCCL. */
void torsh_kineto_add_collective(struct kineto_trace *trace, const struct kineto_event *event);

#endif
