/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The exports that were requested for the end of a session. `torsh finish`, in the writer's folder
 * or, where it was installed, in ../../bin, writes them: the writer links no exporter.
 */
#ifndef TORSH_WRITER_THREADS_END_EXPORTS_H
#define TORSH_WRITER_THREADS_END_EXPORTS_H

#include <stdbool.h>
#include <sys/types.h>

struct end_exports {
	const char *recording; /* path; the formats' files lie next to it */
	const char *formats; /* names of `torsh export --format`, commas between; "": none */
	const char *export_to; /* one more file, whose ending chooses the format; "": none */
	bool is_quiet; /* on stderr only what was not written */
};

/* Was any export requested? */
bool torsh_end_exports_has(const struct end_exports *exports);

/*
 * Export the recording that fd is open on, whatever its path names by now, and wait until it's
 * done. Failures are on stderr.
 */
void torsh_end_exports_run(const struct end_exports *exports, int fd);

/*
 * Begin to export what the session has so far; the writer that listens at socket_path goes on
 * meanwhile. Messages go to messages_fd. Returns the child's pid, whose exit status is 0 where all
 * was written, or -errno.
 */
pid_t torsh_end_exports_begin(const struct end_exports *exports, const char *socket_path,
			      int messages_fd);

#endif
