/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How much the recording keeps (TORSH_PROFILER_RECORD), and of a flight recorder what makes the
 * writer keep a copy (TORSH_PROFILER_KEEP).
 */
#ifndef TORSH_AGENT_PROCESS_VALUES_RECORDER_H
#define TORSH_AGENT_PROCESS_VALUES_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

struct text;

/* RECORD_MODE(NAME, name, what its amount is) */
#define RECORD_MODES                                                         \
	RECORD_MODE(FOLDED, "folded", "none: totals and the whole timeline") \
	RECORD_MODE(FULL, "full", "none: every event")                       \
	RECORD_MODE(LAST_NS, "last-ns", "nanoseconds of the timeline")       \
	RECORD_MODE(LAST_STEPS, "last-steps", "steps of the timeline")       \
	RECORD_MODE(LAST_BYTES, "last-bytes", "bytes of the timeline in the recording")

enum record_mode {
#define RECORD_MODE(NAME, name, text) RECORD_##NAME,
	RECORD_MODES
#undef RECORD_MODE
		N_RECORD_MODES
};

struct record_config {
	enum record_mode mode;
	uint64_t amount; /* from LAST_NS on */
};

/* 0: this does not make the writer keep a copy. */
struct keep_config {
	uint32_t slow_percent; /* a step that takes so much of the median of the last 100 */
	bool on_memory; /* no memory on the host or a device */
	uint64_t hang_ns; /* no step for so long */
	uint32_t signal; /* that the process gets */
};

#define KEEP_SLOW_PERCENT 200u
#define KEEP_HANG_NS UINT64_C(300000000000)

/* "folded", "full", "ring:60s", "ring:20steps", "ring:512M". Returns 0, or -1 and stores nothing. */
int torsh_config_record(const char *value, struct record_config *record);

/* "USR2", "RTMIN+3". Returns 0, or -1 and stores nothing. */
int torsh_config_signal(const char *value, uint32_t *signal);

/* "none", or a list of "memory", "slow:2.5", "hang:5m" and "signal:USR2". Returns as torsh_config_record. */
int torsh_config_keep(const char *value, struct keep_config *keep);

/* Append the writer's argument: "folded", "last-ns:60000000000". */
void torsh_config_put_record(const struct record_config *record, struct text *text);

/* Append the writer's argument: "200:300000000000:1": percent, nanoseconds, on_memory. */
void torsh_config_put_keep(const struct keep_config *keep, struct text *text);

#endif
