/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/live/ finds the running sessions of this user on this machine and sends requests to their
 * writers. Other users' sessions cannot be found or queried: their sockets are in folders that only
 * their owners can enter, and a writer answers only its own user. Sockets of other owners are not
 * used.
 */
#ifndef TORSH_LIVE_LIVE_H
#define TORSH_LIVE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/request.h"
#include "tools/live/stacks/stacks.h"
#include "tools/recording/recording.h"

/* A session that has answered. */
struct live_session {
	char *socket_path;
	uint32_t writer_pid;
	/* its current processes, each with its largest allocation sites: stacks of one frame */
	struct recording *recording;
};

struct live_sessions {
	struct live_session *items; /* sorted, the oldest first */
	size_t n, n_room;
	char *problem; /* about a session that did not answer; NULL: all answered */
};

/* Query all sessions, for n_sites allocation sites per process; the caller frees them. */
void torsh_live_sessions_look(struct live_sessions *sessions, uint32_t n_sites);
/* Free the list and the recordings in it. */
void torsh_live_sessions_free(struct live_sessions *sessions);

/* Query the session at one socket only. */
void torsh_live_sessions_look_at(struct live_sessions *sessions, const char *socket_path,
				 uint32_t n_sites);

/* Print the problem to stderr, if there is one. */
void torsh_live_sessions_warn(const struct live_sessions *sessions);

/* Returns the session of a process, or of the writer with that pid; NULL if there is none. */
const struct live_session *torsh_live_sessions_find(const struct live_sessions *sessions,
						    uint32_t pid);

/* Likewise, but ends the program if there is none. */
const struct live_session *torsh_live_sessions_need(const struct live_sessions *sessions,
						    uint32_t pid);

/* Exit with that sentence. */
_Noreturn void torsh_live_no_process(uint32_t pid);

/* Parse a pid argument; ends the program if it is invalid. */
uint32_t torsh_live_pid(const char *text);

struct live_answer {
	struct request_answer reply;
	int fds[2]; /* -1: none */
};

/*
 * Send a request to the writer at a socket and wait for the answer; with REQUEST_END until the
 * writer has ended, when everything is written. Returns 0 with descriptors that
 * torsh_live_close closes, the writer's result, or -errno: -ECONNREFUSED and -ENOENT without a
 * writer, -EACCES for another user's socket, -ETIMEDOUT, -ECONNRESET if it ended meanwhile, -EPROTO
 * if its version differs.
 */
int torsh_live_query(const char *socket_path, enum request_verb verb, uint32_t n_sites,
		     struct live_answer *answer);

/* Likewise for a request that is about a process. */
int torsh_live_query_process(const char *socket_path, enum request_verb verb, uint32_t pid,
			     struct live_answer *answer);

/* Close the descriptors of an answer. */
void torsh_live_close(struct live_answer *answer);

/* What torsh_live_arm did. */
struct live_armed {
	bool has_started; /* false: it starts with the process's next call */
	uint32_t n_descendants; /* further dormant processes, which were armed too */
};

/*
 * Arm a dormant process of this user (TORSH_PROFILER_ENABLED=dormant), then those that descend from
 * it. Waits two seconds at most. Returns 0, -ESRCH if it is not dormant, or -ECANCELED if it could
 * not start: the reason is on its stderr.
 */
int torsh_live_arm(uint32_t pid, struct live_armed *armed);

/* The session of a process has ended by REQUEST_STOP: torsh_live_arm arms it anew. */
void torsh_live_rest(uint32_t pid);

/* A process that is not recorded until it is armed. */
struct live_dormant {
	uint32_t pid;
	char *program;
	bool is_armed; /* it starts with its next call */
};

struct live_dormant_list {
	struct live_dormant *items; /* by pid */
	size_t n, n_room;
};

/* Find the dormant processes of this user. torsh_live_dormant_free frees them. */
void torsh_live_dormant_look(struct live_dormant_list *list);

/* Free them. */
void torsh_live_dormant_free(struct live_dormant_list *list);

/*
 * Write the snapshot that an answer to REQUEST_SNAPSHOT holds to fd, an empty file: a whole
 * recording, of a session that began at start_realtime_ns. Single events of a full recording are
 * left out. stacks: what it has of threads besides; NULL: none. Returns 0 or -errno.
 */
int torsh_live_write_snapshot(const struct live_answer *answer, uint64_t start_realtime_ns,
			      const struct thread_stacks *stacks, int fd);

/* Returns the sentence for such an error. */
const char *torsh_live_reason(int error);

#endif
