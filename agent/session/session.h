/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The session: one writer for the process tree that began with one preload. The first process
 * starts the writer, every process hands it the descriptor of its channel.
 */
#ifndef TORSH_AGENT_SESSION_SESSION_H
#define TORSH_AGENT_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SESSION_SOCKET_MAX 104 /* bytes with the NUL, as sun_path takes them */

/*
 * Start a writer for a new session and put the path of its socket into socket_path. program is this
 * process's base name, agent_path the agent's own absolute path, beside which the writer lies. The
 * writer becomes nobody's child; its pid is stored to writer_pid, which lies in memory that this
 * process shares with its children. Returns 0 or -errno; what went wrong was said on stderr.
 */
int torsh_session_begin(const char *program, const char *agent_path, _Atomic uint32_t *writer_pid,
			char socket_path[SESSION_SOCKET_MAX]);

/*
 * Hand the channel behind fd to the session's writer. Its pid as this process sees it is stored to
 * writer_pid, where it is seen. Returns 0 or -errno.
 */
int torsh_session_join(const char *socket_path, int fd, _Atomic uint32_t *writer_pid);

/*
 * Did this process begin the session, as the image that it is now or as one before? By the socket's
 * name.
 */
bool torsh_session_is_own(const char *socket_path, int pid);

/* The socket of the session that this process is in; "" before it has joined one. */
extern char torsh_session_socket[SESSION_SOCKET_MAX];

struct channel_header;

/* Did the process with this channel begin the session, as this image or as a former one? */
bool torsh_session_has_begun_by(const struct channel_header *header);

/* Remove the socket of a session that no writer serves, and its directory. */
void torsh_session_remove(const char *socket_path);

#endif
