/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the writer makes of its recording at the end of a session: the exports that were asked for. */
#ifndef TORSH_WRITER_FINISH_H
#define TORSH_WRITER_FINISH_H

/*
 * Export the recording as each of the formats (names of `torsh export --format`, commas between; "": none) into files
 * beside it, and to the file export_to (its ending says the format; "": none). Each export runs in a child of this
 * process, as `torsh export` would. What can't be written is said on stderr; with is_said also what was.
 */
void torsh_finish_exports(const char *recording, const char *formats, const char *export_to, int is_said);

#endif
