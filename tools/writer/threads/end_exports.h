/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The exports that were requested for the end of a session. They are written by `torsh finish`, in
 * the writer's folder or, when installed, in ../../bin, so the writer does not link the exporters.
 */
#ifndef TORSH_WRITER_THREADS_END_EXPORTS_H
#define TORSH_WRITER_THREADS_END_EXPORTS_H

#include <spawn.h>
#include <stdbool.h>
#include <sys/types.h>

struct end_exports {
	const char *recording; /* path; the exported files are put next to it */
	const char *formats; /* comma-separated names as for `torsh export --format`; "": none */
	const char *export_to; /* one more file; its ending selects the format; "": none */
	bool is_quiet; /* print only failures to stderr */
};

/* Returns true if any export was requested. */
bool torsh_end_exports_has(const struct end_exports *exports);

/*
 * Export the recording that fd refers to, whatever its path names by now, and wait until it is
 * done. Failures are printed to stderr.
 */
void torsh_end_exports_run(const struct end_exports *exports, int fd);

/*
 * Begin to export the session so far; the writer that listens at socket_path continues meanwhile.
 * Messages go to messages_fd. Returns the child's pid, or -errno. The child's exit status is 0 if
 * everything was written.
 */
pid_t torsh_end_exports_begin(const struct end_exports *exports, const char *socket_path,
			      int messages_fd);

/*
 * Start the torsh command that belongs to this writer; the arguments end with NULL, actions may be
 * NULL. Returns the child's pid, the leader of a process group, or -errno.
 */
pid_t torsh_end_exports_start(const char *const *arguments,
			      const posix_spawn_file_actions_t *actions);

#endif
