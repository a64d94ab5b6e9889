/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The counters of one thread: opened by it, read by it, closed by it. Descriptors are counted
 * against a limit of the process, and a forked child closes those that it inherited.
 */
#ifndef TORSH_COLLECTORS_PERF_PERF_SET_H
#define TORSH_COLLECTORS_PERF_PERF_SET_H

#include "agent/wire/event.h"
#include "shim/perf/perf_event.h"

struct counter_values {
	uint64_t counts[N_CPU_COUNTERS];
	struct {
		uint64_t enabled_ns, running_ns;
	} groups[N_COUNTER_GROUPS];
};

struct perf_set {
	struct perf_counter hardware[N_CPU_HARDWARE_COUNTERS], migrations;
	enum cpu_counter_way way;
	uint32_t has; /* a bit for each enum cpu_counter */
	int error, migrations_error; /* of perf_event_open: -errno; 0: none */
};

/* Open what this thread can have. The set is zeroed. Never fails: the set has less. */
void torsh_perf_set_open(struct perf_set *set);

/* This is a forked child: close the descriptors that it inherited. */
void torsh_perf_set_forked(void);

/* Close it, on its thread. */
void torsh_perf_set_close(struct perf_set *set);

/*
 * Read the kernel's counts. before: of the last time, elsewhere; migrations are read only where
 * switches are new, because each comes with one.
 */
void torsh_perf_set_software(struct perf_set *set, const struct counter_values *before,
			     struct counter_values *values);

/* Read the processor's counts, if the set has them. Returns false where that failed. */
bool torsh_perf_set_hardware(const struct perf_set *set, struct counter_values *values);

#endif
