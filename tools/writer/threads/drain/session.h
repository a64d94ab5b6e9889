/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The session in the drain thread: the zero of all times in the recording, the rate of the
 * processor's counter, and the Session row. It begins with the first target. Owned by the drain
 * thread.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_SESSION_H
#define TORSH_WRITER_THREADS_DRAIN_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/writer/fold/pauses.h"
#include "tools/writer/output/rows/rows.h"

struct session {
	const char *recording_path;
	const char *record; /* as in rows_session, as is the next */
	bool without_flops;
	bool has_begun;
	bool ends_with_process_1; /* its first process is process 1 of the writer's PID namespace */
	uint64_t monotonic_ns; /* the zero of all times */
	uint64_t realtime_ns; /* the same moment */
	uint64_t kernel_clock; /* identifies CLOCK_MONOTONIC; 0: unknown */
	struct clock_rate rate;
	uint64_t last_measure_ns; /* CLOCK_MONOTONIC */
};

/* Begin with the first target. Its start is the zero of all times if that is recent, else now. */
void torsh_session_begin(struct session *session, const struct target *target);

/* Convert a CLOCK_MONOTONIC time to session time in nanoseconds; times before its zero become 0. */
uint64_t torsh_session_ns(const struct session *session, uint64_t monotonic_ns);

/* Returns the clock of a target that begins now. Call after torsh_clock_rate_fix. */
struct clock_conversion torsh_session_clock(const struct session *session,
					    const struct target *target);

/*
 * Measure the counter's rate again and publish it to the targets. If the counter has jumped, each
 * target gets a note.
 */
void torsh_session_measure(struct session *session, struct target *const *targets,
			   uint32_t n_targets);

/* Do the same at most every 100 ms. */
void torsh_session_measure_if_due(struct session *session, uint64_t now_ns,
				  struct target *const *targets, uint32_t n_targets);

/* Write the Session row with the pauses so far. */
void torsh_session_write(const struct session *session, const struct pauses *pauses,
			 struct recording_file *file);

/*
 * Fill in the row of a snapshot taken at that session time; torsh_pauses_release frees its arrays.
 */
struct rows_session torsh_session_snapshot(const struct session *session,
					   const struct pauses *pauses, uint64_t taken_ns);

#endif
