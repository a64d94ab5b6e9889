/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The session's recording as the drain thread keeps it: what goes into it while targets run and when, and why less does
 * than should.
 */
#ifndef TORSH_WRITER_LEDGER_H
#define TORSH_WRITER_LEDGER_H

#include "tools/store/recording_write.h"
#include "tools/writer/output/rows/rows.h"
#include "tools/writer/threads/syncer.h"

#define LEDGER_REASON_BYTES 256u

struct ledger {
	struct recording_file *file;
	int is_full; /* keep every event */
	uint64_t interval_ns; /* between checkpoints, while they are cheap */
	uint64_t next_checkpoint_ns, step_ns; /* CLOCK_MONOTONIC */
	struct place checkpoint; /* the last Checkpoint row's */
	struct syncer *syncer; /* NULL: none could be started */
	struct cost cost; /* of the writer */
	char **reasons; /* sentences, each said on stderr too */
	uint32_t n_reasons, reason_capacity;
};

/* Begin the recording behind fd, which stays the caller's. Returns 0 or -ENOMEM. */
int torsh_ledger_open(struct ledger *ledger, int fd, const struct recording_limits *limits, int is_full,
		      uint64_t interval_ns);

/* Write the end and close it. is_complete: every process had ended; at_ns: session time. */
void torsh_ledger_close(struct ledger *ledger, int is_complete, uint64_t at_ns);
void torsh_ledger_destroy(struct ledger *ledger);

/* Write a target's events, and its timeline, once there are n_least of them. */
void torsh_ledger_events(struct ledger *ledger, struct target *target, uint32_t n_least);
void torsh_ledger_timeline(struct ledger *ledger, struct target *target, uint32_t n_least);

/* A target's rows as they are now. */
void torsh_ledger_checkpoint(struct ledger *ledger, struct target *target);

/*
 * A checkpoint was written that began at begin_ns (CLOCK_MONOTONIC): all that processes committed before at_ns, a session
 * time, is in the file. Sees that it reaches the disk, and chooses when the next one comes.
 */
void torsh_ledger_end_checkpoint(struct ledger *ledger, uint64_t begin_ns, uint64_t at_ns);

/* Say why the recording takes less than it should, where it newly does. */
void torsh_ledger_look(struct ledger *ledger);

/* A sentence for the recording's end and for stderr, each once; format has a %s for why. */
void torsh_ledger_give_reason(struct ledger *ledger, const char *format, const char *why);

#endif
