/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The session's recording as the drain thread writes it while targets run: what is written and
 * when, and the reasons why less is written than requested.
 */
#ifndef TORSH_WRITER_OUTPUT_CHECKPOINTS_H
#define TORSH_WRITER_OUTPUT_CHECKPOINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/store/recording_write.h"
#include "tools/writer/output/flight.h"
#include "tools/writer/output/rows/rows.h"
#include "tools/writer/threads/syncer.h"

#define CHECKPOINTS_REASON_BYTES 256u

struct checkpoints {
	struct recording_file *file;
	bool is_full; /* keep every event */
	struct flight flight; /* what is kept of timelines */
	uint64_t settled_ns; /* CLOCK_MONOTONIC: what passed before may be written over */
	uint64_t interval_ns; /* minimum time between checkpoints */
	uint64_t next_checkpoint_ns, step_ns; /* CLOCK_MONOTONIC */
	struct extent checkpoint; /* of the last Checkpoint row */
	struct syncer *syncer; /* NULL: none could be started */
	struct cost cost; /* of the writer */
	char **reasons; /* sentences, also printed on stderr */
	uint32_t n_reasons;
	size_t reason_capacity;
};

/* Begin the recording behind fd, which stays the caller's. Returns 0 or -ENOMEM. */
int torsh_checkpoints_open(struct checkpoints *checkpoints, int fd,
			   const struct recording_limits *limits, const struct flight_limit *flight,
			   bool is_full, uint64_t interval_ns);

/*
 * Write the end of the recording and close it. is_complete: every process had ended; at_ns: session
 * time.
 */
void torsh_checkpoints_close(struct checkpoints *checkpoints, bool is_complete, uint64_t at_ns);

/* Free the rest, after torsh_checkpoints_close. */
void torsh_checkpoints_destroy(struct checkpoints *checkpoints);

/* Write a target's events if there are at least n_least. */
void torsh_checkpoints_events(struct checkpoints *checkpoints, struct target *target,
			      uint32_t n_least);

/* Write a target's timeline if it has at least n_least events. */
void torsh_checkpoints_timeline(struct checkpoints *checkpoints, struct target *target,
				uint32_t n_least);

/* Write the target's timeline if that is due for a flight recorder. */
void torsh_checkpoints_flight(struct checkpoints *checkpoints, struct target *target,
			      uint64_t now_ns);

/* Write a target's current rows. */
void torsh_checkpoints_write(struct checkpoints *checkpoints, struct target *target);

/*
 * A checkpoint was written that began at begin_ns (CLOCK_MONOTONIC): everything that processes
 * committed before at_ns, a session time, is in the file. Starts its sync to disk and chooses the
 * time of the next checkpoint.
 */
void torsh_checkpoints_end(struct checkpoints *checkpoints, uint64_t begin_ns, uint64_t at_ns);

/* Record new reasons why the recording contains less than requested. */
void torsh_checkpoints_poll(struct checkpoints *checkpoints);

/*
 * Add a sentence to the recording's end and print it on stderr, each once; format has a %s for why.
 */
void torsh_checkpoints_give_reason(struct checkpoints *checkpoints, const char *format,
				   const char *why);

#endif
