/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Exchanges of times with the writers of other hosts of the job, from which tools/ranks learns how
 * their clocks differ. Read this file first.
 *
 * Off unless TORSH_PROFILER_CLOCK_PEERS is set: then there is neither a thread nor a socket. With
 * "auto" the place is the job's master address and port (of UDP), once a process of the job has
 * them and not all ranks are on this host. Nothing is sent without a key: that of
 * TORSH_PROFILER_CLOCK_KEY, else one of the job's id, which keeps jobs apart and nobody out.
 *
 * Two threads: one resolves names, which may block for long; the other asks and answers. What they
 * find lies here until the drain thread takes it. Hostile packets cost at most a tick's budget:
 * what comes faster is dropped by the kernel. A reply is as long as its request.
 *
 * clock_packet.h is what is sent, clock_peer.h one place.
 */
#ifndef TORSH_WRITER_CLOCKS_CLOCK_PROBES_H
#define TORSH_WRITER_CLOCKS_CLOCK_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/clocks/clock_peer.h"

#define CLOCK_SENTENCE_BYTES 512u

struct clock_probes;

struct clock_probes_options {
	const char *peers, *key; /* as the variables; NULL: not set */
	uint64_t zero_ns, clock; /* as in clock_own */
};

/* Begin. Returns NULL where nothing is asked for. The drain thread calls this and the next ones. */
struct clock_probes *torsh_clock_probes_start(const struct clock_probes_options *options);

/* A process of the session has this identity: n bytes as for torsh_clock_job_read. */
void torsh_clock_probes_see(struct clock_probes *probes, const char *pairs, size_t n);

/* What was found at one place. */
struct clock_found {
	char name[CLOCK_NAME_BYTES + 8]; /* HOST:PORT */
	bool is_here, is_new; /* is_new: it is taken for the first time */
	struct clock_counts counts; /* so far */
	struct clock_sample *samples; /* since the last time; the caller frees them */
	size_t n_samples;
};

/*
 * Take what was found at place i of CLOCK_PEERS_MAX. With is_last also the windows that have not
 * ended. Returns false if there is no such place.
 */
bool torsh_clock_probes_take(struct clock_probes *probes, size_t i, bool is_last,
			     struct clock_found *found);

/* Put a sentence, without its full stop, about why clocks aren't compared; false: there is none. */
bool torsh_clock_probes_trouble(struct clock_probes *probes, char out[CLOCK_SENTENCE_BYTES]);

/* Stop asking and answering. What was found can still be taken. NULL is ignored. */
void torsh_clock_probes_stop(struct clock_probes *probes);

/* Free it, after the stop. NULL is ignored. */
void torsh_clock_probes_destroy(struct clock_probes *probes);

#endif
