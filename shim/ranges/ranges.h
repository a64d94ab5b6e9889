/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Ranges, marks, values and steps as the entry points of torsh.h, NVTX and ITT report them: defined
 * in collectors/ranges/ranges.c. All keep errno and never fail towards the caller. Any thread;
 * texts are copied during the call.
 */
#ifndef TORSH_SHIM_RANGES_RANGES_H
#define TORSH_SHIM_RANGES_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"

/* A text, or its label. {0}: none. */
struct range_text {
	const char *bytes; /* NULL: none, or label is set */
	uint32_t label;
};

/* The attributes of a range or a mark. */
struct range_attributes {
	struct range_text name, domain, category;
	uint32_t source; /* enum range_source */
	uint32_t color;
	uint32_t payload_type; /* enum range_payload */
	uint64_t payload;
};

/* Whether this source is recorded in this process. Starts the agent if needed. */
bool torsh_ranges_wanted(enum range_source source);

/* The label of a text, constant for the life of the process; 0: none. */
uint32_t torsh_ranges_label(const char *text);

/* The same for a text or its label, of a caller that has entered. */
uint32_t torsh_ranges_text_label(struct range_text text);

/*
 * Begin and end a range of the calling thread. Both return its depth in its domain, from 0; pop
 * returns -1 if no range is open.
 */
int torsh_ranges_push(const struct range_attributes *range);

/* End the innermost range of the domain on this thread. */
int torsh_ranges_pop(struct range_text domain, enum range_source source);

/*
 * Begin and end a range by its number, which is not 0, on any thread. torsh_ranges_number returns a
 * number that no other range of this process has.
 */
uint64_t torsh_ranges_number(void);

/* Begin a range with a number other than 0, which any thread may end. */
void torsh_ranges_start(const struct range_attributes *range, uint64_t number);

/* End the range with this number, on any thread. */
void torsh_ranges_end(uint64_t number);

/* Record a mark. */
void torsh_ranges_mark(const struct range_attributes *range);

/* Record a range, or a mark, that is over. begin_ns: of CLOCK_MONOTONIC. */
void torsh_ranges_deferred(const struct range_attributes *range, uint64_t begin_ns,
			   uint64_t duration_ns, bool is_mark);

/* Record a value, the payload, of the counter with this name and domain. */
void torsh_ranges_value(const struct range_attributes *range, enum value_kind kind);

/* Record the start of a training step. */
void torsh_ranges_step(struct range_text name, uint64_t number);
/* Name a thread of this process. tid 0: the calling thread. */
void torsh_ranges_name_thread(uint32_t tid, struct range_text name, enum range_source source);

/*
 * Defined in collectors/ranges/injection.c. The path of the NVTX or ITT consumer in the user's
 * environment; never the agent's; NULL: none. Everything recorded is forwarded to it.
 */
const char *torsh_injection_consumer(enum range_source source);

/*
 * The path that dlopen opens: path, or the agent's if path is such a consumer and the program's
 * NVTX or ITT opens it. So the agent is found, and the environment stays the user's. Any other
 * opener of exactly that path gets the agent too.
 */
const char *torsh_injection_redirect(const char *path);

/* Put a note into the report: what was not recorded, and why. */
void torsh_ranges_note(const char *sentence);

#endif
