/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/live/ finds the running sessions of this user on this machine, and sends requests to their
 * writers. Sessions of other users can't be found or queried: their sockets lie in directories that
 * only they can enter, and a writer answers only its own user. A socket that belongs to somebody
 * else is not used.
 */
#ifndef TORSH_LIVE_LIVE_H
#define TORSH_LIVE_LIVE_H

#include "agent/wire/request.h"
#include "tools/recording/recording.h"

/* A session that has answered. */
struct live_session {
	char *socket_path;
	uint32_t writer_pid;
	/* its processes as of now, each with who holds most: stacks of one frame */
	struct recording *recording;
};

struct live_sessions {
	struct live_session *items; /* the oldest first */
	size_t n, n_room;
	char *problem; /* a sentence about one that is there and didn't answer; NULL: all did */
};

/* Query all sessions, for n_sites of each process; the caller frees them. */
void torsh_live_sessions_look(struct live_sessions *sessions, uint32_t n_sites);
/* Free the list and the recordings in it. */
void torsh_live_sessions_free(struct live_sessions *sessions);

/* Query the session at one socket only. */
void torsh_live_sessions_look_at(struct live_sessions *sessions, const char *socket_path,
				 uint32_t n_sites);

/* Print the problem on stderr, where there is one. */
void torsh_live_sessions_warn(const struct live_sessions *sessions);

/*
 * The session of a process, or of the writer with that pid: NULL where there is none, or the end
 * with a sentence.
 */
const struct live_session *torsh_live_sessions_find(const struct live_sessions *sessions,
						    uint32_t pid);
const struct live_session *torsh_live_sessions_need(const struct live_sessions *sessions,
						    uint32_t pid);

/* Exit with that sentence. */
_Noreturn void torsh_live_no_process(uint32_t pid);

/* A pid as a command's argument, or the end with a sentence. */
uint32_t torsh_live_pid(const char *text);

struct live_answer {
	struct request_answer reply;
	int fds[2]; /* -1: none */
};

/*
 * Send a request to the writer at a socket and wait for the answer. Returns 0 with descriptors that
 * torsh_live_close closes, what the writer answered, or -errno: -ECONNREFUSED and -ENOENT where
 * nobody is there, -EACCES another user's, -ETIMEDOUT, -ECONNRESET when it ended meanwhile, -EPROTO
 * when it speaks another version.
 */
int torsh_live_query(const char *socket_path, enum request_verb verb, uint32_t n_sites,
		     struct live_answer *answer);
/* Close the descriptors of an answer. */
void torsh_live_close(struct live_answer *answer);

/*
 * Write the snapshot that an answer to REQUEST_SNAPSHOT holds to fd, an empty file: a whole
 * recording, of a session that began at start_realtime_ns. Single events of a full recording are
 * left out. Returns 0 or -errno.
 */
int torsh_live_write_snapshot(const struct live_answer *answer, uint64_t start_realtime_ns, int fd);

/* The sentence for such an error. */
const char *torsh_live_reason(int error);

#endif
