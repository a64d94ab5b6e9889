/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds and reads the recording that a user's path refers to, and waits for its writer if that is
 * about to finish. Prints notes to stderr.
 */
#ifndef TORSH_RECORDING_READ_H
#define TORSH_RECORDING_READ_H

#include "tools/recording/recording.h"

/*
 * Returns the path of the recording that path refers to: a file itself; in a directory the newest
 * session, with a note about the others. The caller frees it. NULL with a sentence in error on
 * failure.
 */
char *torsh_recording_locate(const char *path, char *error, size_t n_error);

/*
 * Returns the directory torsh-* in the working directory with the newest recording, as `torsh run`
 * makes them by default; NULL if there is none. The caller frees it.
 */
char *torsh_recording_newest_here(void);

/* Tables that most commands don't need; they are large. */
enum recording_table {
	RECORDING_STACKS = 1,
	RECORDING_USAGE = 2, /* by stack: totals, live blocks, growth, the session-wide peak */
	RECORDING_MOMENTS = 4, /* usage by stack at other times than the peak and the end */
	RECORDING_VERDICTS = 8, /* who kept what was live at the end; part of RECORDING_USAGE */
};

/*
 * Read a whole recording without its events and without some tables (enum recording_table, ored):
 * those stay empty, and their rows are not checked. Returns NULL with a sentence in error if
 * nothing can be read. Damaged parts are reported on stderr and skipped.
 *
 * While a writer holds the file: waits up to wait_s seconds for it if all processes have ended; if
 * one is alive, the current contents are read and recording->is_being_written is set.
 */
struct recording *torsh_recording_read(const char *path, unsigned wait_s, unsigned without,
				       char *error, size_t n_error);

/* Wait as torsh_recording_read does, for callers that read the file themselves. */
void torsh_recording_await(const char *path, unsigned wait_s);

/*
 * Returns true if the recorded process is still running. A younger process with the same pid does
 * not count.
 */
bool torsh_recording_is_alive(const struct recording *recording,
			      const struct recorded_process *process);

#endif
