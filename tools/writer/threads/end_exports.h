/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the writer makes of its recording at the end of a session: the exports that were asked for. */
#ifndef TORSH_WRITER_FINISH_H
#define TORSH_WRITER_FINISH_H

struct finish_plan {
	const char *recording; /* path; the formats' files lie beside it */
	const char *formats; /* names of `torsh export --format`, commas between; "": none */
	const char *export_to; /* one more file, whose ending says the format; "": none */
	int is_said; /* on stderr: what went well, and why something didn't; 0: only that it didn't */
};

int torsh_finish_has_exports(const struct finish_plan *plan);

/*
 * Export the recording, which lies behind fd whatever its path names by now. Each export runs in a child of this process, as `torsh export` would. What can't be written is
 * said on stderr. Returns the number of such.
 */
int torsh_finish_exports(const struct finish_plan *plan, int fd);

/*
 * The same of what the session has so far, whose writer listens at the socket: another process's work, as the writer goes
 * on meanwhile. Returns the number of exports that can't be written, or -errno where there was nothing to make them of.
 */
int torsh_finish_exports_early(const struct finish_plan *plan, const char *socket_path);

#endif
