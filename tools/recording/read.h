/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From a path that the user gave to a recording: which recording is meant, whether its writer is
 * still at work, and whether to wait for that. For commands: reports on stderr what it does.
 */
#ifndef TORSH_RECORDING_READ_H
#define TORSH_RECORDING_READ_H

#include "tools/recording/recording.h"

/*
 * The recording that path means: a file is taken as it is; of a directory the newest session, and
 * the others are mentioned. Returns a path that the caller frees, or NULL with a sentence in error.
 */
char *torsh_recording_locate(const char *path, char *error, size_t n_error);

/*
 * Read a whole recording, without its events. Returns NULL with a sentence in error when nothing
 * can be read. Damage is reported on stderr and read over.
 *
 * While a writer holds the file: waits up to wait_s seconds for it if all processes have ended; if
 * one is alive, what is there now is read, and recording->is_being_written is set.
 */
struct recording *torsh_recording_read(const char *path, unsigned wait_s, char *error,
				       size_t n_error);

/* Wait as torsh_recording_read does, for who reads the file in a way of their own. */
void torsh_recording_await(const char *path, unsigned wait_s);

/*
 * Is the process that was recorded still there? A pid that was given to a younger process doesn't
 * count.
 */
bool torsh_recording_is_alive(const struct recording *recording,
			      const struct recorded_process *process);

#endif
