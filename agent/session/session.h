/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a process and the writer find each other. A session is one writer and the process tree that
 * began with one preload: the first process starts the writer, and every process passes it the
 * descriptor of its channel. First file of this folder.
 */
#ifndef TORSH_AGENT_SESSION_SESSION_H
#define TORSH_AGENT_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SESSION_SOCKET_MAX 104 /* bytes with the NUL, the size of sun_path that is used */

/*
 * Start a writer for a new session and store its socket's path in socket_path. program is this
 * process's base name; agent_path is the agent's absolute path, in the writer's directory. The
 * writer is orphaned; its pid is stored in writer_pid, in memory shared with children. Returns 0,
 * or -errno after a message on stderr.
 */
int torsh_session_begin(const char *program, const char *agent_path, _Atomic uint32_t *writer_pid,
			char socket_path[SESSION_SOCKET_MAX]);

/*
 * Pass the channel fd, which stays the caller's, to the session's writer. Stores the writer's pid
 * in writer_pid if it has one in this PID namespace. Returns 0 or -errno.
 */
int torsh_session_join(const char *socket_path, int fd, _Atomic uint32_t *writer_pid);

/*
 * Whether the socket's name shows that process pid began the session, in this or an earlier image.
 */
bool torsh_session_is_own(const char *socket_path, int pid);

/* The socket of the session that this process is in; "" before it has joined one. */
extern char torsh_session_socket[SESSION_SOCKET_MAX];

struct channel_header;

/* Whether the process of this channel began the session, in this or an earlier image. */
bool torsh_session_has_begun_by(const struct channel_header *header);

/* Remove the socket of a session without a writer, and its directory. */
void torsh_session_remove(const char *socket_path);

#endif
