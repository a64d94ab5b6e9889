/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the entry points of torsh.h, NVTX and ITT tell the collector: defined in
 * collectors/ranges/ranges.c. All keep errno and never fail towards the caller. Any thread; texts
 * are copied during the call.
 */
#ifndef TORSH_SHIM_RANGES_RANGES_H
#define TORSH_SHIM_RANGES_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"

/* A text, or the label that one already is. {0}: none. */
struct range_text {
	const char *bytes; /* NULL: none, or label says it */
	uint32_t label;
};

/* What is said of a range or of a mark. */
struct range_attributes {
	struct range_text name, domain, category;
	uint32_t source; /* enum range_source */
	uint32_t color;
	uint32_t payload_type; /* enum range_payload */
	uint64_t payload;
};

/* Is what such a source says recorded in this process? Starts the agent where that was not done. */
int torsh_ranges_wanted(enum range_source source);

/* The label of a text, which stays what it is as long as the process lives; 0: none. */
uint32_t torsh_ranges_label(const char *text);

/*
 * Both return the range's depth among its domain's on this thread, from 0; pop -1 where there is
 * none to be popped.
 */
int torsh_ranges_push(const struct range_attributes *range);
int torsh_ranges_pop(struct range_text domain, enum range_source source);

/*
 * A range by its number, which is not 0. torsh_ranges_number gives one that no other range of this
 * process has.
 */
uint64_t torsh_ranges_number(void);
void torsh_ranges_start(const struct range_attributes *range, uint64_t number);
void torsh_ranges_end(uint64_t number);

void torsh_ranges_mark(const struct range_attributes *range);

/* The name and the domain of says have this value now: its payload. */
void torsh_ranges_value(const struct range_attributes *range, enum value_kind kind);

void torsh_ranges_step(struct range_text name, uint64_t number);
/* tid 0: the calling thread. */
void torsh_ranges_name_thread(uint32_t tid, struct range_text name, enum range_source source);

/*
 * collectors/ranges/injection.c. The path of the consumer that the user's environment has for NVTX
 * or ITT: not ours; NULL: none. It may be told everything that we are told.
 */
const char *torsh_injection_consumer(enum range_source source);

/*
 * What dlopen is to open: path, or the agent where path is such a consumer, about to be opened by a
 * program's NVTX or ITT. So these find the agent, and the environment stays the user's. Whoever
 * else opens the consumer by just that path gets the agent too.
 */
const char *torsh_injection_redirect(const char *path);

/* A sentence for the reports: what was not recorded, and why. */
void torsh_ranges_note(const char *sentence);

#endif
