/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Copies of a flight recorder's recording that are kept: when something happens, the session as it
 * is then becomes a recording of its own, NAME.kept/N.torsh. The torsh command writes it, as a
 * client of this writer, so that the drain goes on. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_THREADS_KEEP_KEEPS_H
#define TORSH_WRITER_THREADS_KEEP_KEEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/input/target.h"
#include "tools/writer/threads/keep/keep_peers.h"

#define KEEPS_ROOM 32u
#define KEEPS_MAX 16u /* of a session, besides those that somebody asks for: the last ones */
/*
 * From one copy to the next, or half of what the recorder spans: what happens sooner waits, and the
 * latest of it counts.
 */
#define KEEPS_APART_NS UINT64_C(10000000000)

/* When; 0: never. As TORSH_PROFILER_KEEP has it. */
struct keep_limits {
	uint32_t slow_percent; /* of the median step */
	uint64_t hang_ns; /* without a step */
	bool on_memory; /* no memory on the host or a device */
};

enum keep_cause {
	KEEP_REQUESTED, /* by a client */
	KEEP_SEEN, /* by this writer, by its limits */
	KEEP_BY_PEER, /* by another writer of the job */
};

struct keep_command;

struct keeps {
	const char *recording_path;
	struct keep_limits limits;
	struct keep_peers *peers; /* NULL: none */
	bool is_on; /* a flight recorder */
	uint32_t n_kept;
	uint32_t unasked[KEEPS_ROOM]; /* numbers of the last ones, as a ring */
	uint32_t n_unasked, n_dropped; /* so far */
	uint32_t n_gone; /* of those that were dropped: there was a file */
	char *pending; /* what waits; NULL: nothing */
	uint32_t pending_process;
	enum keep_cause pending_cause;
	uint64_t span_ns; /* of the flight recorder */
	uint64_t busy_until_ns; /* session time until which the last copy may have held up steps */
	uint64_t last_ns; /* CLOCK_MONOTONIC, of the last one; 0: none */
	struct keep_command *first; /* that run */
};

/*
 * Keep a copy, whose moment is about now; target: the process that it happened to, which gets a
 * note. Returns the number of the copy, 0 if there is none for it, or -errno.
 */
int torsh_keeps_keep(struct keeps *keeps, struct target *target, enum keep_cause cause,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Keep a copy if the target's steps, or their absence, are a cause. now_ns: CLOCK_MONOTONIC. */
void torsh_keeps_check(struct keeps *keeps, struct target *target, uint64_t now_ns,
		       uint64_t session_ns);

/*
 * The CLOCK_MONOTONIC time at which torsh_keeps_check has to be called again for the target,
 * UINT64_MAX: after its next events.
 */
uint64_t torsh_keeps_next_ns(const struct keeps *keeps, const struct target *target,
			     uint64_t now_ns, uint64_t session_ns);

/* Note which copies could not be written, keep one if another writer does, and drop old ones. */
void torsh_keeps_poll(struct keeps *keeps, struct target *const *targets, uint32_t n_targets);

/* Returns true while a copy is being written: the session is not to end before. */
bool torsh_keeps_is_busy(const struct keeps *keeps);

/* Wait for the copies that are being written, and free what it has. */
void torsh_keeps_destroy(struct keeps *keeps);

#endif
