/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The session's recording as the drain thread keeps it: what goes into it while targets run and
 * when, and why less does than should.
 */
#ifndef TORSH_WRITER_OUTPUT_CHECKPOINTS_H
#define TORSH_WRITER_OUTPUT_CHECKPOINTS_H

#include <stdbool.h>

#include "tools/store/recording_write.h"
#include "tools/writer/output/rows/rows.h"
#include "tools/writer/threads/syncer.h"

#define CHECKPOINTS_REASON_BYTES 256u

struct checkpoints {
	struct recording_file *file;
	bool is_full; /* keep every event */
	uint64_t interval_ns; /* between checkpoints, while they are cheap */
	uint64_t next_checkpoint_ns, step_ns; /* CLOCK_MONOTONIC */
	struct extent checkpoint; /* the last Checkpoint row's */
	struct syncer *syncer; /* NULL: none could be started */
	struct cost cost; /* of the writer */
	char **reasons; /* sentences, each on stderr too */
	uint32_t n_reasons, reason_capacity;
};

/* Begin the recording behind fd, which stays the caller's. Returns 0 or -ENOMEM. */
int torsh_checkpoints_open(struct checkpoints *checkpoints, int fd,
			   const struct recording_limits *limits, bool is_full,
			   uint64_t interval_ns);

/* Write the end and close it. is_complete: every process had ended; at_ns: session time. */
void torsh_checkpoints_close(struct checkpoints *checkpoints, bool is_complete, uint64_t at_ns);

/* Free what is left, after torsh_checkpoints_close. */
void torsh_checkpoints_destroy(struct checkpoints *checkpoints);

/* Write a target's events, once there are n_least of them. */
void torsh_checkpoints_events(struct checkpoints *checkpoints, struct target *target,
			      uint32_t n_least);

/* Write a target's timeline, once there are n_least events in it. */
void torsh_checkpoints_timeline(struct checkpoints *checkpoints, struct target *target,
				uint32_t n_least);

/* A target's rows as they are now. */
void torsh_checkpoints_write(struct checkpoints *checkpoints, struct target *target);

/*
 * A checkpoint was written that began at begin_ns (CLOCK_MONOTONIC): all that processes committed
 * before at_ns, a session time, is in the file. Sees that it reaches the disk, and chooses when the
 * next one comes.
 */
void torsh_checkpoints_end(struct checkpoints *checkpoints, uint64_t begin_ns, uint64_t at_ns);

/* Give the reasons for which the recording takes less than it should, where there are new ones. */
void torsh_checkpoints_poll(struct checkpoints *checkpoints);

/* A sentence for the recording's end and for stderr, each once; format has a %s for why. */
void torsh_checkpoints_give_reason(struct checkpoints *checkpoints, const char *format,
				   const char *why);

#endif
